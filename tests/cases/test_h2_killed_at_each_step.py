"""H2: a workflow killed before, inside and after each step: what has finished never again, what was in flight at most twice."""

from ordering.model import NewItem, State
from tests.cases.checks import checks
from tests.cases.kit import Kit

STEPS = 5  # of workflow.killed
MOMENTS = ("before", "inside", "after")


def test_a_workflow_killed_at_each_step(kit: Kit) -> None:
    # Two of everything that takes up what a dead process has left.
    catalogue = kit.catalogue(imports=("tests.cases.probe_tasks", "tests.cases.workflow_tasks"), name="workflows.toml")
    kit.feeder(ready=False)
    kit.up(workers=2, slots=2, RELEVO_CATALOGUE=str(catalogue))
    lanes: dict[str, list[int]] = {}
    for moment in MOMENTS:
        kit.plan(moment, start=False)
        new = [NewItem("workflow.killed", [step, moment]) for step in range(1, STEPS + 1)]
        lanes[moment] = kit.add_many(moment, [*new, NewItem("probe.nap", title="the next in the lane")])
    kit.wait_done(120)
    for moment, (*workflows, following) in lanes.items():
        assert kit.outcomes(following) == ["succeeded"]
        for step, item in enumerate(workflows, 1):
            assert kit.outcomes(item) == ["interrupted", "succeeded"], (moment, step)
            assert kit.item(item).result == [10, 20, 30, 40, 50]
            ran = [note.what for note in kit.notes(item) if note.what.startswith("step")]
            expected = [f"step {number}" for number in range(1, STEPS + 1)]
            if moment == "inside":
                expected.insert(step, f"step {step}")
            assert ran == expected, (moment, step)
            assert [(each.number, each.done, each.failures) for each in kit.history(item).steps] == [(n, True, 0) for n in range(1, 6)]
    assert kit.sql("select 1 from relevo.dispatch where ended_at is null") == []
    assert [kit.state(item) for lane in lanes.values() for item in lane] == [State.SUCCEEDED] * 18
    checks(kit)
