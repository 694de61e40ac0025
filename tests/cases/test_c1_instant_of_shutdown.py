"""C1: a message taken off the queue in the instant of shutdown is not lost, and a half-taken item blocks no plan."""

import random
import time

from ordering.model import State
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.conftest import Scale


@both_brokers
def test_fed_around_the_stop_of_the_only_worker(kit: Kit, scale: Scale) -> None:
    # A round starts a worker, which costs seconds: the short form has the square of its share.
    rounds, seed = scale.rounds(round(200 * min(1.0, scale.factor)), least=2), random.randrange(10**6)
    chance = random.Random(seed)
    kit.feeder()
    kit.plan("a")
    items = []
    worker = kit.worker(1)
    for _ in range(rounds):
        add_first = chance.random() < 0.5
        if add_first:
            items.append(kit.add("a", "probe.nap", 0.05))
            time.sleep(chance.uniform(0, 0.05))
        worker.term()
        if not add_first:
            time.sleep(chance.uniform(0, 0.05))
            items.append(kit.add("a", "probe.nap", 0.05))
        assert worker.wait(40) == 0
        worker = kit.worker(1)
        # A message that died with the worker is missed after 10 s (rule 5), unless nobody ever took it.
        kit.wait_state(items[-1], State.SUCCEEDED, seconds=40)
    assert [len(kit.starts(item)) for item in items] == [1] * rounds, f"seed {seed}"
    assert [kit.outcomes(item) for item in items] == [["succeeded"]] * rounds, f"seed {seed}"
    checks(kit)


@both_brokers
def test_stopped_between_taken_and_running(kit: Kit, scale: Scale) -> None:
    """The claim waits for a row lock of somebody else while TERM comes."""
    kit.feeder()
    kit.plan("a")
    items = []
    for _ in range(scale.rounds(5, least=1)):
        item = kit.add("a", "probe.nap", 0.05)
        items.append(item)
        wait_until(lambda item=item: kit.dispatches(item), 15, "the item is dispatched")  # type: ignore[misc]
        with kit.psql() as somebody:
            somebody.execute("select from relevo.dispatch where id = %s for update", (kit.dispatches(item)[0].id,))
            worker = kit.worker(1)
            wait_until(lambda: claims_waiting(kit), 30, "the claim waits")
            worker.term()
            time.sleep(scale.seconds(3, least=1))
            assert not kit.starts(item)
            somebody.rollback()
        assert worker.wait(40) == 0
        kit.wait_state(item, State.SUCCEEDED, State.DISPATCHED)
    kit.worker(1)
    kit.wait_done()
    assert [len(kit.starts(item)) for item in items] == [1] * len(items)
    checks(kit)


def claims_waiting(kit: Kit) -> bool:
    """Whether a session of a pool process waits for a lock."""
    return bool(kit.waiting("relevo session%"))
