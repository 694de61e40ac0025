"""E2: a decision counts once, however often and by how many it is pressed."""

from functools import partial

import pytest

from ordering import decision, lines, plans
from ordering.errors import NotAllowed
from ordering.model import Item, NewItem, OnFailure, State
from tests.cases import commandline
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.line import act, at_once
from tests.conftest import Scale


def unresolved(kit: Kit, plan: str = "a") -> list[int]:
    with kit.tx() as tx:
        return [item.id for item in lines.unresolved(tx, plans.get(tx, plan).id)]


def test_retry_pressed_five_times_at_once(kit: Kit, scale: Scale) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("a")
    for number in range(scale.rounds(20, least=2)):
        free = kit.folder / f"free-{number}"
        item, behind = kit.add_many("a", [NewItem("probe.fail_until", [str(free)]), NewItem("probe.nap")])
        kit.wait_state(item, State.FAILED)
        free.touch()
        results = at_once([partial(act, kit, decision.retry, item, actor=ACTOR)] * 5)
        refused = [each for each in results if isinstance(each, NotAllowed)]
        assert len(refused) == 4, results
        assert sum(isinstance(each, Item) for each in results) == 1
        for refusal in refused:
            assert str(refusal.state) in ("waiting", "dispatched", "running", "succeeded")
            assert "queued already" in str(refusal) or "only failed and interrupted" in str(refusal)
        kit.wait_done(wanted=[item, behind])
        assert kit.outcomes(item) == ["failed", "succeeded"]
        assert len(kit.starts(item)) == 2
        decisions = kit.sql("select id from relevo.event where item_id = :item and action = 'retry'", item=item)
        assert len(decisions) == 1, "one person decided"
        assert unresolved(kit) == []
    checks(kit)


def test_retry_of_one_beside_retry_of_all(kit: Kit) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("a", start=False, on_failure=OnFailure.CONTINUE)
    free = kit.folder / "free"
    failing = kit.add_many("a", [NewItem("probe.fail_until", [str(free)]) for _ in range(3)])
    wait_until(lambda: unresolved(kit) == failing, 60, "all have failed")
    free.touch()
    first = failing[0]
    processes = [commandline.popen(kit, "retry", *map(str, failing))]
    processes += [commandline.popen(kit, "retry", str(first), "--note", f"press {number}") for number in range(5)]
    answers = [process.communicate(timeout=commandline.LONGEST) for process in processes]
    codes = [process.returncode for process in processes]
    decided = kit.sql("select id from relevo.event where item_id = :item and action = 'retry'", item=first)
    assert (codes.count(0), codes.count(2), len(decided)) == (1, 5, 1), [(*each, code) for each, code in zip(answers, codes, strict=True)]
    all_won = codes[0] == 0
    assert unresolved(kit) == ([] if all_won else failing[1:]), "all or none, and never what somebody else has decided"
    if not all_won:
        commandline.call(kit, "retry", *map(str, failing[1:]))
    kit.start("a")
    kit.wait_done()
    assert [kit.outcomes(item) for item in failing] == [["failed", "succeeded"]] * 3
    assert len(kit.starts()) == 6
    checks(kit)


@pytest.mark.parametrize("verb", ["retry", "skip", "resolve"])
def test_what_runs_or_is_done_is_not_decided(kit: Kit, verb: str) -> None:
    kit.up(workers=1, slots=1)
    kit.plan("a")
    release = kit.folder / "release"
    done, running, waiting = kit.add_many("a", [NewItem("probe.nap"), NewItem("probe.wait_for", [str(release)]), NewItem("probe.nap")])
    kit.wait_start(running)
    before = {item: kit.item(item) for item in (done, running, waiting)}
    for item, state in ((done, "succeeded"), (running, "running"), (waiting, "waiting")):
        with pytest.raises(NotAllowed, match=rf"Item {item} is {state}"), kit.tx() as tx:
            getattr(decision, verb)(tx, item, actor=ACTOR, note="a slip")
    assert {item: kit.item(item) for item in (done, running, waiting)} == before
    assert kit.events(verb) == []
    release.touch()
    kit.wait_done()
    assert len(kit.starts()) == 3
    checks(kit)
