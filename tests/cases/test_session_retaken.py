"""A pool process whose connection broke takes its session again and goes on; a body that may be requeued is stopped in time."""

import time

import pytest

from ordering.model import State
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until

pytestmark = pytest.mark.timeout(180)


def test_cut_for_two_seconds_while_a_body_runs(kit: Kit) -> None:
    proxy, url = kit.database_proxy()
    kit.feeder()
    kit.worker(1, RELEVO_DATABASE_URL=url)
    kit.plan("a")
    release = kit.folder / "release"
    item = kit.add("a", "probe.wait_for", str(release))
    kit.wait_start(item)
    cut_at = time.monotonic()
    proxy.refusing = True
    proxy.cut()
    kit.wait_state(item, State.INTERRUPTED, seconds=8)
    assert kit.outcomes(item) == ["interrupted"]
    wait_until(lambda: time.monotonic() > cut_at + 2, 5, "two seconds have passed")
    proxy.refusing = False
    kit.wait_state(item, State.RUNNING, seconds=15)
    assert kit.outcomes(item) == [], "unresolved, it is not an attempt that ended"
    release.touch()
    kit.wait_done()
    assert kit.outcomes(item) == ["succeeded"]
    assert len(kit.starts(item)) == 1
    assert [event.reason for event in kit.events("retake")] == ["the process lives; only its connection was lost"]
    checks(kit)


def test_result_in_hand_while_it_is_cut(kit: Kit) -> None:
    proxy, url = kit.database_proxy()
    kit.feeder()
    kit.worker(1, RELEVO_DATABASE_URL=url)
    kit.plan("a")
    release = kit.folder / "release"
    item = kit.add("a", "probe.wait_for", str(release))
    kit.wait_start(item)
    proxy.refusing = True
    proxy.cut()
    kit.wait_state(item, State.INTERRUPTED, seconds=8)
    release.touch()
    wait_until(lambda: kit.ends(item), 15, "the body ends")
    proxy.refusing = False
    kit.wait_done()
    assert kit.outcomes(item) == ["succeeded"]
    assert len(kit.starts(item)) == 1
    checks(kit)


def test_requeue_body_stops_itself_and_runs_elsewhere(kit: Kit) -> None:
    """As on a host that is cut off: from the broker too, or its next process would take the item again and wait for Postgres."""
    proxy, url = kit.database_proxy()
    broker_proxy, broker_url = kit.broker_proxy()
    kit.feeder()
    kit.worker(1, RELEVO_DATABASE_URL=url, RELEVO_BROKER_URL=broker_url)
    kit.plan("a")
    item = kit.add("a", "probe.nap_again", 40)
    first = kit.wait_start(item)
    kit.worker(1)
    with kit.tx() as tx:
        tx.exec_driver_sql("update relevo.item set args = '[0]' where id = %s", (item,))
    cut_at = time.monotonic()
    for each in (proxy, broker_proxy):
        each.refusing = True
        each.cut()
    # Its process is seen to live meanwhile, so nothing is requeued before it has stopped its body.
    second = kit.wait_start(item, number=2)
    (end,) = [note for note in kit.ends(item) if note.attempt == 1]
    assert cut_at < end.at < cut_at + 30, "its body would have gone on for 40 s"
    assert end.at < second.at
    assert second.pid != first.pid
    kit.wait_done()
    assert kit.outcomes(item) == ["interrupted", "succeeded"]
    proxy.refusing = broker_proxy.refusing = False
    wait_until(lambda: kit.item(item).tries == 1, 30, "what the platform itself cut off uses up no try")
    checks(kit)


def test_stop_while_postgres_is_away(kit: Kit) -> None:
    """An outcome that cannot be written does not keep a worker from stopping; the item is marked when Postgres is back."""
    proxy, url = kit.database_proxy()
    kit.feeder()
    worker = kit.worker(1, RELEVO_DATABASE_URL=url)
    kit.plan("a")
    release = kit.folder / "release"
    item = kit.add("a", "probe.wait_for", str(release))
    kit.wait_start(item)
    proxy.refusing = True
    proxy.cut()
    release.touch()
    wait_until(lambda: kit.ends(item), 15, "the body ends")
    worker.term()
    assert worker.wait(10 + 30) == 0
    kit.wait_state(item, State.INTERRUPTED, seconds=15)
    checks(kit)
