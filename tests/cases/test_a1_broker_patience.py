"""A1: work that outlasts the broker's patience runs once."""

import time

from ordering.model import State
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.conftest import Scale

LOOK = 10  # seconds between kombu's looks for messages whose visibility timeout has passed: a shorter body proves nothing


@both_brokers
def test_long_body_is_not_given_to_a_second_worker(kit: Kit, scale: Scale) -> None:
    patience = round(scale.seconds(10, least=2))
    workers = kit.up(workers=3, slots=1, PROBE_VISIBILITY=str(patience))
    kit.plan("long")
    body, release = scale.seconds(40, least=LOOK + 2 * patience), kit.folder / "release"
    long = kit.add("long", "probe.wait_for", str(release))
    following = kit.add("long", "probe.nap", 0)
    started = kit.wait_start(long)
    wait_until(lambda: kit.messages() == 0, 15, "a message is acknowledged when its body starts, so the broker has nothing to give again")
    workers.append(kit.worker(1, PROBE_VISIBILITY=str(patience)))
    kit.send_copy(long)
    wait_until(lambda: kit.dispatches(long)[0].copies_dropped == 1, 15, "the second copy is dropped and counted")
    assert kit.state(long) is State.RUNNING
    wait_until(lambda: time.monotonic() > started.at + body, body + 5, "long enough for the broker to lose patience")
    release.touch()

    kit.wait_done()
    assert len(kit.starts(long)) == len(kit.ends(long)) == 1
    assert kit.starts(following)[0].at > kit.ends(long)[0].at
    assert all(worker.process.poll() is None for worker in workers)
    checks(kit)
