"""Repair-all: what is unresolved is mended at the front in the preset order, and the plan goes on."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, text

from app.catalogue import CataloguePlan
from app.repair_all import AllRepaired, Repaired, repair_all
from app.run_all import run_all
from ordering import db, items, plans
from ordering.errors import MayStillRun, UnknownPlan, UnknownTask
from ordering.history import history
from ordering.model import OnFailure, State
from tests.app.catalogues import THREE, line
from tests.ordering.acts import ACTOR, BROKEN, assert_sound, bring, end, events, feed, lose, open_run, order, plan, put, run, state

CONTINUE = THREE.replace("[plans.line]", '[plans.line]\non_failure = "continue"').replace("once = true", "")


@pytest.fixture
def three(tmp_path: Path) -> CataloguePlan:
    """The plan `line` with the entries a (once), b (with a repair), c in that order."""
    return line(tmp_path)


def repair(tx: Connection, catalogue: CataloguePlan | None, name: str = "line") -> AllRepaired:
    return repair_all(tx, name, catalogue, actor=ACTOR)


def test_a_repair_is_put_to_the_front_and_the_failed_item_resolved(tx: Connection, three: CataloguePlan) -> None:
    added = run_all(tx, three, actor=ACTOR)
    end(tx)
    broken = end(tx, BROKEN)
    done = repair(tx, three)
    ((item, by),) = [(each.item, each.by) for each in done.repaired]
    assert item == broken == added.added[1]
    assert order(tx) == [by, added.added[2]]
    mend = items.get(tx, by)
    assert (mend.kwargs["command"], mend.title, mend.kind, mend.repairs, mend.entry) == (["mend"], "Repair: b", "repair", broken, None)
    assert state(tx, broken) is State.RESOLVED
    assert history(tx, broken).events[-1].reason == f"repair added as item {by}"
    assert done.run is not None
    assert done.run.id == added.run.id
    assert end(tx) == by
    assert_sound(tx)


def test_an_entry_without_a_repair_runs_again_itself(tx: Connection, three: CataloguePlan) -> None:
    added = run_all(tx, three, actor=ACTOR)
    broken = end(tx, BROKEN)
    done = repair(tx, three)
    assert list(done.repaired) == [Repaired(broken, broken)]
    assert order(tx) == list(added.added)
    assert end(tx) == broken


def test_an_interrupted_item_is_repaired_too(tx: Connection, three: CataloguePlan) -> None:
    run_all(tx, three, actor=ACTOR)
    claimed = run(tx)
    lose(tx, claimed)
    assert list(repair(tx, three).repaired) == [Repaired(claimed.item_id, claimed.item_id)]
    assert end(tx) == claimed.item_id


@pytest.mark.parametrize("key", ["a", "b"], ids=["runs again", "has a repair"])
def test_nothing_is_repaired_while_a_process_may_still_run_it(tx: Connection, three: CataloguePlan, key: str) -> None:
    run_all(tx, three, [key, "c"], actor=ACTOR)
    claimed = run(tx)
    lose(tx, claimed, closed=False)
    before = (order(tx), events(tx))
    with pytest.raises(MayStillRun, match=f"Item {claimed.item_id} cannot run again yet"):
        repair(tx, three)
    assert (order(tx), events(tx)) == before


def test_many_are_repaired_in_the_preset_order_in_front_of_what_waits(tx: Connection, tmp_path: Path) -> None:
    catalogue = line(tmp_path, CONTINUE)
    c, b, a = run_all(tx, catalogue, ["c", "b", "a"], actor=ACTOR).added
    assert [end(tx, BROKEN) for _ in range(3)] == [c, b, a]
    (waiting,) = put(tx)
    done = repair(tx, catalogue)
    assert [each.item for each in done.repaired] == [a, b, c]
    assert order(tx) == [each.by for each in done.repaired] + [waiting]
    assert done.run is not None
    assert not done.run.opened


def test_a_drained_plan_is_started_again(tx: Connection, tmp_path: Path) -> None:
    catalogue = line(tmp_path, CONTINUE)
    run_all(tx, catalogue, ["b"], actor=ACTOR)
    end(tx, BROKEN)
    assert feed(tx) is None
    assert not open_run(tx)
    done = repair(tx, catalogue)
    assert done.run is not None
    assert done.run.opened
    assert (done.run.on_failure, len(order(tx))) == (OnFailure.CONTINUE, 1)


def test_a_repair_that_failed_runs_again_at_its_entrys_place(tx: Connection, tmp_path: Path) -> None:
    catalogue = line(tmp_path, CONTINUE)
    b, c = run_all(tx, catalogue, ["b", "c"], actor=ACTOR).added
    assert end(tx, BROKEN) == b
    (first,) = repair(tx, catalogue).repaired
    assert end(tx, BROKEN) == first.by
    assert end(tx, BROKEN) == c
    again = repair(tx, catalogue)
    assert list(again.repaired) == [Repaired(first.by, first.by), Repaired(c, c)]
    assert order(tx) == [first.by, c]


def test_items_of_no_entry_are_retried_behind_the_entries(tx: Connection, tmp_path: Path) -> None:
    catalogue = line(tmp_path, CONTINUE)
    plan(tx, on_failure=OnFailure.CONTINUE)
    (own,) = put(tx)
    (b,) = run_all(tx, catalogue, ["b"], actor=ACTOR).added
    assert [end(tx, BROKEN), end(tx, BROKEN)] == [own, b]
    assert [each.item for each in repair(tx, catalogue).repaired] == [b, own]


def test_a_plan_without_a_catalogue_is_repaired_by_running_again(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    broken = bring(tx, State.FAILED)
    assert list(repair(tx, None).repaired) == [Repaired(broken, broken)]


def test_a_retried_item_has_a_fresh_allowance(tx: Connection, three: CataloguePlan) -> None:
    run_all(tx, three, actor=ACTOR)
    broken = end(tx, BROKEN)
    repair(tx, three)
    found = items.get(tx, broken)
    assert (found.attempts, found.tries) == (1, 0)


@pytest.mark.parametrize("started", [True, False])
def test_a_healthy_plan_is_left_as_it_is(tx: Connection, three: CataloguePlan, started: bool) -> None:
    plan(tx)
    put(tx, 2)
    if started:
        plans.start(tx, "line", actor=ACTOR)
    before = (order(tx), events(tx), open_run(tx))
    assert repair(tx, three) == AllRepaired([], None)
    assert (order(tx), events(tx), open_run(tx)) == before


def test_a_plan_that_was_never_run_is_healthy(tx: Connection, three: CataloguePlan) -> None:
    assert repair(tx, three) == AllRepaired([], None)
    assert events(tx) == []


def test_an_unknown_plan_is_refused(tx: Connection) -> None:
    with pytest.raises(UnknownPlan):
        repair(tx, None, "nobody")


def test_the_unknown_task_of_a_repair_is_refused_and_nothing_is_changed(tx: Connection, three: CataloguePlan, tmp_path: Path) -> None:
    run_all(tx, three, ["b"], actor=ACTOR)
    broken = end(tx, BROKEN)
    before = events(tx)
    with pytest.raises(UnknownTask, match="'mine'"):
        repair(tx, line(tmp_path, THREE.replace('repair = { task = "shell"', 'repair = { task = "mine"')))
    assert (state(tx, broken), events(tx)) == (State.FAILED, before)


def test_a_long_title_is_cut_for_its_repair(tx: Connection, tmp_path: Path) -> None:
    catalogue = line(tmp_path, THREE.replace('key = "b"', f'key = "b"\n    title = "{"t" * items.TITLE_LIMIT}"'))
    run_all(tx, catalogue, ["b"], actor=ACTOR)
    end(tx, BROKEN)
    (done,) = repair(tx, catalogue).repaired
    assert len(items.get(tx, done.by).title) == items.TITLE_LIMIT


def test_called_at_once_by_many_each_item_is_repaired_once(engine: Engine, three: CataloguePlan) -> None:
    with engine.begin() as tx:
        run_all(tx, three, ["b"], actor=ACTOR)
        end(tx, BROKEN)
    together = threading.Barrier(5)
    done: list[AllRepaired] = []

    def call() -> None:
        together.wait(60)
        done.append(db.transact(engine, lambda tx: repair(tx, three)))

    threads = [threading.Thread(target=call) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert sorted(len(each.repaired) for each in done) == [0, 0, 0, 0, 1]
    with engine.begin() as tx:
        assert tx.execute(text("select count(*) from relevo.item where repairs is not null")).scalar_one() == 1
        assert_sound(tx)
