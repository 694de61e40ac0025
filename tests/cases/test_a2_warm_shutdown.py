"""A2: what finished while its worker was stopping is not run again after the restart."""

import random
import time
from datetime import timedelta

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
    kit.plan("a", stop_grace=timedelta(seconds=60))
    releases = [kit.folder / f"release-{number}" for number in range(rounds)]
    items = [kit.add("a", "probe.wait_for", str(release)) for release in releases]
    for item, release in zip(items, releases, strict=True):
        worker = kit.worker(1)
        kit.wait_start(item)
        moment = moments.uniform(0, body)
        time.sleep(moment)
        worker.term()
        wait_until(lambda worker=worker: "Stopping gracefully" in worker.text(), 15, "the worker has heard it")  # type: ignore[misc]
        time.sleep(body - moment)
        release.touch()
        assert worker.wait(30) == 0
        assert kit.state(item) is State.SUCCEEDED, f"seed {seed}"
        assert len(kit.starts()) == items.index(item) + 1, f"the plan moved on by one place at a time (seed {seed})"
        assert len(kit.ends(item)) == 1
    kit.worker(1)
    wait_until(lambda: kit.messages() == 0, 15, "the broker is empty")
    assert [len(kit.starts(item)) for item in items] == [1] * rounds
    wait_until(lambda: kit.view("a").status == "drained", 30, "the run ends")
    checks(kit)
