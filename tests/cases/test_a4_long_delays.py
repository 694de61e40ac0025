"""A4: a delay longer than the broker's patience makes no copies, and what is not due is not in the broker."""

import time
from datetime import UTC, datetime, timedelta

import psutil

from ordering.model import NewItem, State
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.conftest import Scale


@both_brokers
def test_backoff_longer_than_the_visibility_timeout(kit: Kit, scale: Scale) -> None:
    patience, backoff = round(scale.seconds(10, least=1)), scale.seconds(45, least=6)
    kit.up(workers=3, slots=1, PROBE_VISIBILITY=str(patience))
    kit.plan("a")
    item = kit.add("a", "probe.fail_first", 1, backoff)
    failed = kit.wait_start(item)
    waiting = kit.wait_state(item, State.WAITING)
    assert waiting.not_before is not None
    due = failed.at + backoff
    wait_until(lambda: kit.messages() == 0, 4, "the message of the first try is acknowledged")
    while True:
        held = kit.messages()
        if time.monotonic() > due - 1:  # asked at a time when it is due, or nearly so
            break
        assert held == 0, "a delay is a row, not a message"
        time.sleep(0.1)
    kit.wait_done(backoff + 60)
    _, second = kit.starts(item)
    assert -0.1 < second.at - due < 15
    # A copy would come with the next look of the broker; the plan would then have more starts than attempts.
    assert kit.outcomes(item) == ["failed", "succeeded"]
    checks(kit)


def test_many_delayed_items_stay_out_of_the_broker(kit: Kit, scale: Scale) -> None:
    plans = scale.rounds(100, least=10)
    (worker,) = kit.up(workers=1, slots=2)
    later = datetime.now(UTC) + timedelta(hours=2)
    before = memory(worker.pid)
    for number in range(plans):
        kit.plan(f"later-{number}", start=False)
        kit.add_many(f"later-{number}", [NewItem("probe.nap", not_before=later) for _ in range(50)])
    kit.plan("now")
    runs = [kit.add("now", "probe.nap", 0) for _ in range(20)]
    most = 0

    def done() -> bool:
        nonlocal most
        most = max(most, kit.messages())
        return all(kit.state(item) is State.SUCCEEDED for item in runs)

    wait_until(done, 30, "the items that are due run")
    assert most <= 2, "nothing in the broker but the one head that is due, and the one before it until it is acknowledged"
    wait_until(lambda: kit.messages() == 0, 30, "the last message is acknowledged")
    assert {
        row.state for row in kit.sql("select distinct i.state from relevo.item i join relevo.plan p on p.id = plan_id where name <> 'now'")
    } == {"waiting"}
    assert memory(worker.pid) - before < 50 * 2**20
    checks(kit)


def memory(pid: int) -> int:
    """Resident bytes of a process and its children."""
    process = psutil.Process(pid)
    return sum(member.memory_info().rss for member in (process, *process.children()))
