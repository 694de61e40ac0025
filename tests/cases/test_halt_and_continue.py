"""Rule 3: each run halts at a failure or goes on, as it was told; nothing starts again past what nobody has looked at."""

import re

import pytest

from ordering import decision
from ordering.errors import PlanBlocked
from ordering.model import NewItem, OnFailure, State
from tests.cases import commandline
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.line import act

GOOD = NewItem("probe.nap")
BAD = NewItem("probe.fail", title="the bad one")


def test_halt_then_the_decision_lets_the_same_run_go_on(kit: Kit) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("a", start=False)
    for verb, state in (("skip", State.SKIPPED), ("resolve", State.RESOLVED)):
        first, bad, behind = kit.add_many("a", [GOOD, BAD, GOOD])
        kit.wait_state(bad, State.FAILED)
        run = kit.view("a").run
        assert run is not None
        assert kit.view("a").status == "halted"
        _, said = commandline.call(kit, "start", "a", code=1)
        assert f"{bad} 'the bad one' (failed)" in said
        assert (kit.state(first), kit.state(behind)) == (State.SUCCEEDED, State.WAITING)
        act(kit, getattr(decision, verb), bad, actor=ACTOR, note="looked at it")
        kit.wait_done(wanted=[first, behind])
        wait_until(lambda: kit.view("a").status == "drained", 30, "the run ends")
        after = kit.view("a").run
        assert after is not None
        assert after.id == run.id, "the decision let the same run go on"
        assert kit.state(bad) is state
    checks(kit)


def test_continue_goes_on_and_start_refuses_until_each_is_decided(kit: Kit) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("a", start=False)
    line = kit.add_many("a", [BAD, GOOD, BAD, GOOD, BAD], start=False)
    kit.start("a", on_failure=OnFailure.CONTINUE)  # this run's own policy: the plan says halt
    bad, good = line[::2], line[1::2]
    kit.wait_done(wanted=good)
    wait_until(lambda: kit.view("a").status == "drained", 30, "the run goes to its end")
    assert [note.item for note in kit.starts()] == line, "the order is kept, past the failures"
    left = list(bad)
    while left:
        with pytest.raises(PlanBlocked) as refused:
            kit.start("a")
        assert [item for item, _, _ in refused.value.items] == left
        assert [int(named) for named in re.findall(r"(\d+) 'the bad one' \(failed\)", str(refused.value))] == left
        item = left.pop(0)
        act(kit, decision.skip, item, actor=ACTOR)
    last = kit.add_many("a", [GOOD, BAD, GOOD], start=False)
    kit.start("a")
    kit.wait_state(last[1], State.FAILED)
    assert kit.view("a").status == "halted", "the next run has the plan's own policy again"
    assert kit.state(last[2]) is State.WAITING
    checks(kit)


def test_the_policy_of_a_run_that_is_under_way(kit: Kit) -> None:
    kit.up(workers=1, slots=1)
    kit.plan("a", on_failure=OnFailure.CONTINUE)
    release = kit.folder / "release"
    held, bad, behind = kit.add_many("a", [NewItem("probe.wait_for", [str(release)]), BAD, GOOD])
    kit.wait_start(held)
    commandline.call(kit, "start", "a", "--on-failure", "halt")
    release.touch()
    kit.wait_state(bad, State.FAILED)
    assert kit.view("a").status == "halted"
    assert kit.state(behind) is State.WAITING
    kit.retry(bad)
    wait_until(lambda: kit.outcomes(bad) == ["failed", "failed"], 30, "it fails again")
    assert kit.view("a").status == "halted"
    assert len(kit.starts(behind)) == 0
    checks(kit)


def test_an_interruption_keeps_its_place_under_continue_too(kit: Kit) -> None:
    kit.up(workers=1, slots=1)
    kit.plan("a", start=False, on_failure=OnFailure.CONTINUE)
    killed, behind = kit.add_many("a", [NewItem("probe.die"), GOOD])
    kit.wait_state(killed, State.INTERRUPTED)
    assert kit.view("a").status == "halted"
    with pytest.raises(PlanBlocked, match=rf"{killed} .*\(interrupted\)"):
        kit.start("a")
    assert kit.starts(behind) == []
    act(kit, decision.resolve, killed, actor=ACTOR, note="did it by hand")
    kit.wait_done(wanted=[behind])
    checks(kit)
