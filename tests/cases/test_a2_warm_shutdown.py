"""A2: what finished while its worker was stopping is not run again after the restart."""

import random
import time

from ordering.model import State
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.conftest import Scale


@both_brokers
def test_finished_during_shutdown_and_not_run_again(kit: Kit, scale: Scale) -> None:
    rounds, body = scale.rounds(20, least=2), scale.seconds(6, least=1)
    seed = random.randrange(10**6)
    moments = random.Random(seed)
    kit.feeder()
    kit.plan("a")
    items = [kit.add("a", "probe.nap", body) for _ in range(rounds)]
    for item in items:
        worker = kit.worker(1)
        kit.wait_start(item)
        time.sleep(moments.uniform(0, body))
        worker.term()
        assert worker.wait(body + 20) == 0
        assert kit.state(item) is State.SUCCEEDED, f"seed {seed}"
        assert len(kit.starts()) == items.index(item) + 1, f"the plan moved on by one place at a time (seed {seed})"
        assert len(kit.ends(item)) == 1
    kit.worker(1)
    wait_until(lambda: kit.messages() == 0, 5, "the broker is empty")
    assert [len(kit.starts(item)) for item in items] == [1] * rounds
    assert kit.view("a").status == "drained"
    checks(kit)
