"""Feeding: only the head, never past one that waits for its time, and never more than one of a serial plan."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import finish, head, items, plans, tasks
from ordering.model import DEFAULT_QUEUE, First, OnFailure, State
from ordering.tasks import TaskInfo
from tests.ordering.acts import (
    ACTOR,
    BROKEN,
    DONE,
    LONG_AGO,
    TOMORROW,
    assert_sound,
    bring,
    claim,
    end,
    feed,
    item_of,
    lose,
    order,
    plan,
    put,
    run,
)


@pytest.fixture
def started(tx: Connection) -> Connection:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    return tx


def ready(tx: Connection) -> bool:
    """Whether feeding the only plan would do anything."""
    return (plans.get(tx, "line").id, plans.get(tx, "line").serial) in head.ready(tx)


def test_items_go_out_one_by_one_in_their_order(started: Connection) -> None:
    line = put(started, 3)
    for each in line:
        assert ready(started)
        fed = feed(started)
        assert fed
        assert item_of(started, fed.id) == each
        assert not ready(started)
        assert feed(started) is None
        claimed = claim(started, fed)
        assert feed(started) is None
        finish.finish(started, claimed, DONE)
    assert ready(started)  # to be drained
    assert feed(started) is None
    assert not ready(started)


def test_a_dispatch_says_where_and_what(started: Connection) -> None:
    tasks.register(started, [TaskInfo("noop", "slow")])
    put(started, args=["a" * 600], kwargs={"b": 1})
    fed = feed(started)
    assert fed
    assert (fed.queue, fed.task, fed.kwargsrepr, len(fed.argsrepr)) == ("slow", "noop", '{"b": 1}', 500)
    items.cancel(started, item_of(started, fed.id), actor=ACTOR)
    started.execute(text("delete from relevo.task"))
    put(started)
    again = feed(started)
    assert again
    assert again.queue == DEFAULT_QUEUE


def test_nothing_goes_out_before_start_nor_after_a_pause(tx: Connection) -> None:
    plan(tx)
    put(tx)
    assert not ready(tx)
    assert feed(tx) is None
    plans.start(tx, "line", actor=ACTOR)
    assert ready(tx)
    plans.pause(tx, "line", actor=ACTOR)
    assert not ready(tx)
    assert feed(tx) is None


def test_a_head_that_waits_for_its_time_holds_the_line(started: Connection) -> None:
    (first,) = put(started, not_before=TOMORROW)
    (second,) = put(started)
    assert not ready(started)
    assert feed(started) is None
    assert plans.start(started, "line", actor=ACTOR).opened is False  # and the run is not drained
    started.execute(text("update relevo.item set not_before = now() where id = :id"), {"id": first})
    assert ready(started)
    assert run(started).item_id == first
    assert items.get(started, first).not_before is None
    assert order(started) == [second]


def test_one_added_in_front_of_a_waiting_head_goes(started: Connection) -> None:
    put(started, not_before=TOMORROW)
    (front,) = put(started, to=First())
    assert run(started).item_id == front


@pytest.mark.parametrize("kind", [State.DISPATCHED, State.RUNNING, State.FAILED, State.INTERRUPTED])
def test_an_unresolved_head_keeps_its_place(started: Connection, kind: State) -> None:
    bring(started, kind)
    put(started)
    assert not ready(started)
    assert feed(started) is None


@pytest.mark.parametrize("kind", [State.POSTPONED, State.SUCCEEDED, State.SKIPPED, State.RESOLVED, State.CANCELLED])
def test_what_is_out_of_the_line_holds_nobody(started: Connection, kind: State) -> None:
    bring(started, kind)
    (behind,) = put(started)
    assert ready(started)
    assert run(started).item_id == behind


def test_an_interruption_keeps_its_place_under_continue_too(tx: Connection) -> None:
    plan(tx, on_failure=OnFailure.CONTINUE)
    plans.start(tx, "line", actor=ACTOR)
    put(tx, 3)
    end(tx, BROKEN)
    lose(tx, run(tx))
    assert feed(tx) is None


def test_the_postponed_wake_at_their_old_place(started: Connection) -> None:
    _, early, late, behind = put(started, 4)
    for each in (early, late):
        items.postpone(started, each, TOMORROW, actor=ACTOR)
    end(started)
    run(started)
    started.execute(text("update relevo.item set not_before = now() where id = :id"), {"id": early})
    assert head.wake_postponed(started) == {plans.get(started, "line").id}
    assert order(started) == [early]
    assert head.wake_postponed(started) == set()
    items.postpone(started, late, LONG_AGO, actor=ACTOR)
    assert order(started) == [early, late]
    assert behind not in order(started)


def test_a_blocked_plan_starves_nobody(tx: Connection) -> None:
    for name in ("blocked", "later", "free"):
        plan(tx, name)
        plans.start(tx, name, actor=ACTOR)
    bring(tx, State.FAILED, "blocked")
    put(tx, plan="later", not_before=TOMORROW)
    for name in ("blocked", "later", "free"):
        put(tx, 3, plan=name)
    assert head.ready(tx) == [(plans.get(tx, "free").id, True)]


def test_a_stream_keeps_a_window_out_and_passes_what_is_not_due(tx: Connection) -> None:
    made = plan(tx, concurrency=2)
    put(tx, not_before=TOMORROW)
    line = put(tx, 9)
    fed = head.feed(tx, made.id, serial=False)
    assert sorted(item_of(tx, each.id) for each in fed) == line[:2]
    assert head.feed(tx, made.id, serial=False) == []
    finish.finish(tx, claim(tx, fed[0]), DONE)
    assert len(head.feed(tx, made.id, serial=False)) == 1
    assert_sound(tx)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_many_feeders_at_once_hand_out_each_item_once(engine: Engine, concurrency: int) -> None:
    with engine.begin() as tx:
        made = plan(tx, concurrency=concurrency)
        line = put(tx, 12)
        plans.start(tx, "line", actor=ACTOR)

    def feeder(_: int) -> list[UUID]:
        with engine.begin() as tx:
            return [each.id for each in head.feed(tx, made.id, serial=made.serial)]

    seen: list[int] = []
    with ThreadPoolExecutor(4) as pool:
        while len(seen) < len(line):
            fed = [each for some in pool.map(feeder, range(4)) for each in some]
            assert fed
            with engine.begin() as tx:
                assert_sound(tx)
                seen += sorted(item_of(tx, each) for each in fed)
                for each in fed:
                    tx.execute(text("update relevo.dispatch set ended_at = now() where id = :id"), {"id": each})
                    done = "update relevo.item set attempts = :a, state = 'succeeded', settled_at = now()"
                    tx.execute(text(f"{done}, at_head = false where dispatch_id = :id"), {"id": each, "a": int(concurrency > 1)})
    assert seen == line
