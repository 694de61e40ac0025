"""Run-all: what is added, in which order, what is left out, and that two calls at once add nothing twice."""

import threading
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, text

from app.catalogue import CataloguePlan
from app.run_all import ONCE, AllAdded, Left, run_all
from ordering import add, db, decision, items, plans, tasks
from ordering.errors import Invalid, PlanBlocked, UnknownTask
from ordering.model import NewItem, OnFailure, State
from tests.app.catalogues import THREE, line
from tests.ordering.acts import ACTOR, BROKEN, assert_sound, bring, end, events, feed, order


@pytest.fixture
def three(tmp_path: Path) -> CataloguePlan:
    """The plan `line` with the entries a (once), b (with a repair), c in that order."""
    return line(tmp_path)


def run(tx: Connection, plan: CataloguePlan, *keys: str) -> AllAdded:
    return run_all(tx, plan, keys, actor=ACTOR)


def entries(tx: Connection) -> list[str]:
    """The entries of what waits, in its order."""
    return list(tx.execute(text("select entry from relevo.item where state = 'waiting' order by position, id")).scalars())


def drain(tx: Connection) -> None:
    while feed_one(tx):
        pass


def feed_one(tx: Connection) -> bool:
    if not order(tx):
        assert feed(tx) is None
        return False
    end(tx)
    return True


def test_the_plan_is_created_filled_in_order_and_started(tx: Connection, three: CataloguePlan) -> None:
    done = run(tx, three)
    assert list(done.added) == order(tx)
    assert entries(tx) == ["a", "b", "c"]
    assert done.left == []
    assert done.run.opened
    assert events(tx) == ["create", "add", "start"]


def test_settings_of_the_catalogue_become_the_plans(tx: Connection, tmp_path: Path) -> None:
    run(tx, line(tmp_path))
    changed = THREE.replace("[plans.line]", '[plans.line]\ntitle = "New"\non_failure = "continue"')
    done = run(tx, line(tmp_path, changed))
    made = plans.get(tx, "line")
    assert (made.title, made.on_failure) == ("New", OnFailure.CONTINUE)
    assert done.run.on_failure is OnFailure.HALT  # the run that is open keeps its own


def test_called_again_it_adds_nothing_twice(tx: Connection, three: CataloguePlan) -> None:
    first = run(tx, three)
    feed(tx)
    again = run(tx, three)
    assert again.added == []
    assert list(again.left) == [Left("a", "dispatched"), Left("b", "waiting"), Left("c", "waiting")]
    assert again.run.id == first.run.id
    assert not again.run.opened


def test_called_again_meanwhile_what_this_run_has_done_is_not_added_again(tx: Connection, three: CataloguePlan) -> None:
    added = run(tx, three).added
    assert end(tx) == added[0]
    assert end(tx, BROKEN) == added[1]
    decision.resolve(tx, added[1], actor=ACTOR, note="by hand")
    again = run(tx, three)
    assert list(again.left) == [Left("a", "succeeded in this run"), Left("b", "resolved in this run"), Left("c", "waiting")]
    assert again.added == []


def test_what_a_person_cancelled_may_be_asked_for_again(tx: Connection, three: CataloguePlan) -> None:
    added = run(tx, three).added
    items.cancel(tx, added[1], actor=ACTOR)
    assert len(run(tx, three).added) == 1
    assert entries(tx) == ["a", "c", "b"]


def test_a_stream_runs_its_entries_again_although_its_run_never_ends(tx: Connection, three: CataloguePlan) -> None:
    plans.create(tx, "line", actor=ACTOR, concurrency=2)
    assert len(run(tx, three, "b").added) == 1
    tx.execute(text("update relevo.item set state = 'succeeded', settled_at = now()"))
    assert len(run(tx, three, "b").added) == 1


def test_after_a_drain_everything_runs_again_but_what_succeeded_once(tx: Connection, three: CataloguePlan) -> None:
    run(tx, three)
    drain(tx)
    again = run(tx, three)
    assert entries(tx) == ["b", "c"]
    assert list(again.left) == [Left("a", ONCE)]
    assert again.run.opened


@pytest.mark.parametrize("state", [State.SKIPPED, State.RESOLVED, State.CANCELLED])
def test_once_means_once_succeeded(tx: Connection, three: CataloguePlan, state: State) -> None:
    plans.create(tx, "line", actor=ACTOR)
    plans.start(tx, "line", actor=ACTOR)
    bring(tx, state, entry="a")
    plans.pause(tx, "line", actor=ACTOR)
    run(tx, three)
    assert entries(tx) == ["a", "b", "c"]


@pytest.mark.parametrize("state", [State.WAITING, State.POSTPONED, State.DISPATCHED])
def test_what_is_not_settled_is_not_added(tx: Connection, three: CataloguePlan, state: State) -> None:
    plans.create(tx, "line", actor=ACTOR)
    plans.start(tx, "line", actor=ACTOR)
    bring(tx, state, entry="b")
    done = run(tx, three)
    assert list(done.left) == [Left("b", state)]
    assert len(done.added) == 2


def test_the_keys_given_are_added_in_the_order_given(tx: Connection, three: CataloguePlan) -> None:
    run(tx, three, "c", "a", "c")
    assert entries(tx) == ["c", "a"]


def test_an_unknown_key_is_refused_with_those_that_are_known(tx: Connection, three: CataloguePlan) -> None:
    with pytest.raises(Invalid, match=r"plan 'line' has no entry 'x' \(it has: a, b, c\)"):
        run(tx, three, "a", "x")
    assert events(tx) == []


def test_an_unresolved_item_is_named_and_nothing_is_added(tx: Connection, three: CataloguePlan) -> None:
    run(tx, three, "b")
    end(tx, BROKEN)
    with pytest.raises(PlanBlocked, match=r"unresolved items: \d+ 'b'"):
        run(tx, three, "a")
    assert entries(tx) == []


def test_an_unknown_task_is_refused_and_nothing_is_added(tx: Connection, tmp_path: Path) -> None:
    plan = line(tmp_path, THREE.replace('key = "c"\n    task = "shell"', 'key = "c"\n    task = "mine"'))
    with pytest.raises(UnknownTask, match="'mine'"):
        run(tx, plan)
    assert events(tx) == []
    tasks.register(tx, [tasks.TaskInfo("mine", "queue")])
    assert len(run(tx, plan).added) == 3


def test_the_unknown_task_of_a_repair_is_refused_before_it_is_needed(tx: Connection, tmp_path: Path) -> None:
    with pytest.raises(UnknownTask, match="'mine'"):
        run(tx, line(tmp_path, THREE.replace('repair = { task = "shell"', 'repair = { task = "mine"')))


def test_entries_stand_behind_what_waits_already(tx: Connection, three: CataloguePlan) -> None:
    plans.create(tx, "line", actor=ACTOR)
    first = add.add(tx, "line", NewItem("shell"), actor=ACTOR).id
    done = run(tx, three)
    assert order(tx) == [first, *done.added]


def test_nothing_to_add_starts_what_waits(tx: Connection, three: CataloguePlan) -> None:
    run(tx, three)
    plans.pause(tx, "line", actor=ACTOR)
    done = run(tx, three)
    assert (done.added, done.run.opened) == ([], True)


@pytest.mark.parametrize("plan_is_there", [True, False])
def test_called_at_once_by_many_nothing_is_added_twice(engine: Engine, three: CataloguePlan, plan_is_there: bool) -> None:
    if plan_is_there:
        with engine.begin() as tx:
            plans.create(tx, "line", actor=ACTOR)
    together = threading.Barrier(6)
    done: list[AllAdded] = []

    def call() -> None:
        together.wait(60)
        done.append(db.transact(engine, lambda tx: run_all(tx, three, actor=ACTOR)))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert sorted(len(each.added) for each in done) == [0, 0, 0, 0, 0, 3]
    assert len({each.run.id for each in done}) == 1
    with engine.begin() as tx:
        assert entries(tx) == ["a", "b", "c"]
        assert_sound(tx)


def test_a_stream_of_the_catalogue_runs_too_and_stays_a_stream(tx: Connection, tmp_path: Path) -> None:
    stream = THREE.replace("[plans.line]", "[plans.line]\nconcurrency = 4")
    assert len(run(tx, line(tmp_path, stream)).added) == 3
    again = run(tx, line(tmp_path, stream))
    assert (again.added, len(again.left)) == ([], 3)
    assert run(tx, line(tmp_path, stream.replace("= 4", "= 6"))).plan.concurrency == 6
    with pytest.raises(Invalid, match=r"^concurrency: 1 is out of range; the stream 'line' takes 2 to 10000\.$"):
        run(tx, line(tmp_path, stream.replace("= 4", "= 1")))
