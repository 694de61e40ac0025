"""C4: a worker that does not know the task says so; the item is not silently consumed."""

from ordering.model import State
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit


@both_brokers
def test_unknown_task_then_a_worker_that_knows_it(kit: Kit) -> None:
    (old,) = kit.up()
    kit.plan("x")
    kit.plan("y")
    unknown, behind = kit.add("x", "probe.later"), kit.add("x", "probe.nap", 0)
    ordinary = [kit.add("y", "probe.nap", 0.05) for _ in range(5)]
    failed = kit.wait_state(unknown, State.FAILED)
    assert "unknown task probe.later" in (failed.error or "")
    assert failed.at_head
    kit.wait_done(wanted=ordinary)
    assert not kit.starts(behind)
    assert kit.view("x").status == "halted"
    (event,) = kit.events("refuse")
    assert event.after["task"] == "probe.later"

    newer = kit.catalogue(["tests.cases.probe_tasks", "tests.cases.later_tasks"], name="newer.toml")
    kit.worker(RELEVO_CATALOGUE=str(newer))
    old.term()
    assert old.wait(30) == 0
    kit.retry(unknown)
    kit.wait_done()
    assert len(kit.starts(unknown)) == len(kit.starts(behind)) == 1
    checks(kit)
