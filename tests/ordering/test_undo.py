"""Undo: what can be taken back goes back to where it was, and what cannot is refused with the reason."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import decision, head, items, move, plans, trail, undo
from ordering.errors import NotUndoable, UnknownEvent
from ordering.model import After, Before, First, Item, Last, Place, State
from tests.ordering.acts import ACTOR, LONG_AGO, TOMORROW, assert_sound, bring, end, events, feed, open_run, order, plan, put, run, state
from tests.ordering.rivals import race


def last(tx: Connection) -> int:
    found: int = tx.execute(text("select max(id) from relevo.event")).scalar_one()
    return found


def back(tx: Connection, event: int | None = None) -> Item:
    """Undo the event, or the latest one, which says beforehand that this can be done."""
    event = event or last(tx)
    assert trail.event(tx, event).undoable
    return undo.undo(tx, event, actor="eve", reason="slipped")


def refused(tx: Connection, event: int, why: str) -> None:
    assert not trail.event(tx, event).undoable
    with pytest.raises(NotUndoable, match=why):
        undo.undo(tx, event, actor=ACTOR)


@pytest.fixture
def line(tx: Connection) -> list[int]:
    """A plan that is not started, with five items."""
    plan(tx)
    return put(tx, 5)


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("to", [First(), Last(), 1, 3])
def test_a_move_goes_back_to_its_very_position(tx: Connection, line: list[int], index: int, to: Place | int) -> None:
    place = After(line[to]) if isinstance(to, int) else to
    before = [items.get(tx, each).position for each in line]
    move.move(tx, line[index], place, actor=ACTOR)
    if order(tx) == line:
        return
    assert back(tx).id == line[index]
    assert order(tx) == line
    assert [items.get(tx, each).position for each in line] == before
    assert_sound(tx)


def test_an_undo_is_an_event_that_names_what_it_undid(tx: Connection, line: list[int]) -> None:
    move.move(tx, line[4], First(), actor=ACTOR)
    event = last(tx)
    back(tx)
    told = trail.event(tx, last(tx))
    assert (told.actor, told.action, told.item, told.reason) == ("eve", "undo", line[4], "slipped")
    assert told.after["event"] == event
    assert told.after["undone"] == "move"
    refused(tx, event, f"item {line[4]} was undone already")
    refused(tx, last(tx), "this is an undo")


def test_beside_its_neighbour_though_the_numbers_are_others(tx: Connection, line: list[int]) -> None:
    a, b, c, d, e = line
    move.move(tx, c, First(), actor=ACTOR)
    event = last(tx)
    tx.execute(text("update relevo.item set position = position * 1000 + 7 where settled_at is null"))
    back(tx, event)
    assert order(tx) == [a, b, c, d, e]


def test_where_its_neighbour_was_though_that_moved(tx: Connection, line: list[int]) -> None:
    a, b, c, d, e = line
    move.move(tx, e, First(), actor=ACTOR)
    event = last(tx)
    move.move(tx, d, First(), actor="another")
    back(tx, event)
    assert order(tx) == [d, a, b, c, e]


def test_its_place_is_taken_by_another(tx: Connection, line: list[int]) -> None:
    a, b, c, d, e = line
    move.move(tx, e, First(), actor=ACTOR)
    event = last(tx)
    (new,) = put(tx)  # takes the number that is free at the end
    assert items.get(tx, new).position == 5
    back(tx, event)
    assert order(tx) == [a, b, c, d, e, new]


def test_both_neighbours_are_gone(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    a, b, c, d = put(tx, 4)
    move.move(tx, b, Last(), actor=ACTOR)
    event = last(tx)
    assert end(tx) == a
    items.cancel(tx, c, actor=ACTOR)
    back(tx, event)
    assert order(tx) == [b, d]
    assert_sound(tx)


def test_not_in_front_of_what_is_out(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    a, b, c = put(tx, 3)
    move.move(tx, a, Last(), actor=ACTOR)
    event = last(tx)
    assert run(tx).item_id == b
    back(tx, event)
    assert order(tx) == [a, c]
    assert items.get(tx, a).position > items.get(tx, b).position
    assert_sound(tx)


def test_not_what_was_moved_again_handed_out_or_decided(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    a, b, c = put(tx, 3)
    move.move(tx, c, First(), actor=ACTOR)
    event = last(tx)
    move.move(tx, c, Last(), actor="shop-7")
    refused(tx, event, f"item {c} was moved since, by shop-7")
    move.move(tx, c, First(), actor=ACTOR)
    event = last(tx)
    feed(tx)
    refused(tx, event, f"item {c} is handed out by now")
    with pytest.raises(UnknownEvent):
        undo.undo(tx, 10**9, actor=ACTOR)
    assert order(tx) == [a, b]


def test_not_what_runs(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    _, b = put(tx, 2)
    move.move(tx, b, First(), actor=ACTOR)
    event = last(tx)
    assert run(tx).item_id == b
    refused(tx, event, f"item {b} is running by now")


def test_a_postponement_is_back_in_the_line(tx: Connection, line: list[int]) -> None:
    items.postpone(tx, line[1], TOMORROW, actor=ACTOR)
    assert back(tx).not_before is None
    assert order(tx) == line


def test_a_second_postponement_gives_back_the_first_time(tx: Connection, line: list[int]) -> None:
    items.postpone(tx, line[1], TOMORROW, actor=ACTOR)
    first = last(tx)
    items.postpone(tx, line[1], TOMORROW + timedelta(hours=1), actor=ACTOR)
    refused(tx, first, "was postponed since")
    item = back(tx)
    assert (item.state, item.not_before) == (State.POSTPONED, TOMORROW)


def test_what_was_brought_back_is_postponed_again(tx: Connection, line: list[int]) -> None:
    items.postpone(tx, line[1], TOMORROW, actor=ACTOR)
    items.postpone(tx, line[1], LONG_AGO, actor=ACTOR)
    item = back(tx)
    assert (item.state, item.not_before) == (State.POSTPONED, TOMORROW)


def test_a_postponement_that_is_over_is_not_undone(tx: Connection, line: list[int]) -> None:
    items.postpone(tx, line[1], datetime.now(UTC) + timedelta(hours=1), actor=ACTOR)
    tx.execute(text("update relevo.item set not_before = now() where state = 'postponed'"))
    head.wake_postponed(tx)
    refused(tx, last(tx), f"item {line[1]} is back in the line already")


def test_what_was_dispatched_and_postponed_waits_again(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    item = bring(tx, State.DISPATCHED)
    items.postpone(tx, item, TOMORROW, actor=ACTOR)
    assert back(tx).state is State.WAITING
    assert feed(tx) is not None
    assert state(tx, item) is State.DISPATCHED


@pytest.mark.parametrize("was", [State.WAITING, State.POSTPONED, State.DISPATCHED])
def test_a_cancelled_item_stands_at_its_old_place(tx: Connection, was: State) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    item = bring(tx, was)
    behind = put(tx, 2)
    items.cancel(tx, item, actor=ACTOR)
    undone = back(tx)
    assert undone.state is (State.POSTPONED if was is State.POSTPONED else State.WAITING)
    assert undone.settled_at is None
    assert undone.not_before == (TOMORROW if was is State.POSTPONED else None)
    assert order(tx) == ([] if was is State.POSTPONED else [item]) + behind
    assert_sound(tx)


def test_a_cancelled_item_whose_place_another_took(tx: Connection, line: list[int]) -> None:
    items.cancel(tx, line[4], actor=ACTOR)
    event = last(tx)
    (new,) = put(tx)
    back(tx, event)
    assert order(tx) == [*line, new]
    assert_sound(tx)


def test_a_body_that_was_stopped_does_not_come_back(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    (item,) = put(tx)
    run(tx)
    items.cancel(tx, item, actor=ACTOR)
    refused(tx, last(tx), f"item {item} had started, and its body was stopped")


def test_an_entry_that_was_added_anew_is_not_there_twice(tx: Connection) -> None:
    plan(tx)
    (item,) = put(tx, entry="audit")
    items.cancel(tx, item, actor=ACTOR)
    event = last(tx)
    put(tx, entry="audit")
    with pytest.raises(NotUndoable, match="its entry 'audit' has another item by now"):
        undo.undo(tx, event, actor=ACTOR)


def test_a_decision_is_not_undone(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    for decide in (decision.skip, decision.retry):
        item = bring(tx, State.FAILED)
        decide(tx, item, actor=ACTOR)
        refused(tx, last(tx), f"this is a {events(tx)[-1]}")


def test_an_item_that_is_not_kept_any_more(tx: Connection, line: list[int]) -> None:
    items.cancel(tx, line[0], actor=ACTOR)
    tx.execute(text("delete from relevo.item where id = :id"), {"id": line[0]})
    refused(tx, last(tx), f"item {line[0]} is not kept any more")


def test_many_at_once_are_undone_latest_first_or_none(tx: Connection, line: list[int]) -> None:
    begun = last(tx)
    for each in (line[0], line[1], line[2]):
        move.move(tx, each, Last(), actor=ACTOR)
    undo.undo_many(tx, [begun + 1, begun + 3, begun + 2], actor=ACTOR)
    assert order(tx) == line


def test_an_autostart_plan_goes_on_with_what_came_back(tx: Connection) -> None:
    plan(tx, autostart=True)
    (item,) = put(tx)
    items.cancel(tx, item, actor=ACTOR)
    event = last(tx)
    assert feed(tx) is None
    assert not open_run(tx)
    back(tx, event)
    assert open_run(tx)
    assert feed(tx) is not None


def test_a_stream_too(tx: Connection) -> None:
    plan(tx, concurrency=4)
    line = put(tx, 4)
    move.move(tx, line[3], Before(line[0]), actor=ACTOR)
    back(tx)
    assert order(tx) == line
    items.cancel(tx, line[2], actor=ACTOR)
    event = last(tx)
    new = put(tx)
    back(tx, event)
    assert order(tx) == line + new
    assert_sound(tx)


def test_undo_waits_for_who_moves_it_again_and_is_too_late(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)
        line = put(tx, 3)
        move.move(tx, line[2], First(), actor=ACTOR)
        event = last(tx)

    def second(tx: Connection) -> str:
        with pytest.raises(NotUndoable) as refusal:
            undo.undo(tx, event, actor=ACTOR)
        return str(refusal.value)

    assert "moved since, by shop-7" in race(engine, lambda tx: move.move(tx, line[2], Last(), actor="shop-7"), second)
