"""Moving: every place, what the person saw, who may move and next to whom."""

from decimal import Decimal

import pytest
from sqlalchemy import Connection, text

from ordering import items, move, plans
from ordering.errors import NotInLine, NotMovable, StaleOrder, UnknownItem
from ordering.model import After, Before, First, Last, Place, State
from ordering.move import Seen
from tests.ordering.acts import ACTOR, LONG_AGO, TOMORROW, assert_sound, bring, events, feed, item_of, order, plan, put, run, state

STAYS = (State.DISPATCHED, State.RUNNING, State.FAILED, State.INTERRUPTED, State.SUCCEEDED, State.SKIPPED, State.RESOLVED, State.CANCELLED)


def go(tx: Connection, item_id: int, to: Place, seen: Seen | None = None) -> None:
    move.move(tx, item_id, to, actor=ACTOR, seen=seen)


def test_every_item_to_every_place_of_a_line_of_five(tx: Connection) -> None:
    plan(tx)
    put(tx, 5)
    for index in range(5):
        for to in range(5):
            for after in (True, False):
                before = order(tx)
                expected = [each for each in before if each != before[index]]
                neighbour = expected[max(0, to - 1)] if after else expected[min(3, to)]
                expected.insert(expected.index(neighbour) + after, before[index])
                go(tx, before[index], After(neighbour) if after else Before(neighbour))
                assert order(tx) == expected
        line = order(tx)
        go(tx, line[index], First())
        assert order(tx)[0] == line[index]
        go(tx, line[index], Last())
        assert order(tx)[-1] == line[index]
    assert_sound(tx)


def test_a_move_writes_one_row_one_event_and_the_shortest_position(tx: Connection) -> None:
    plan(tx)
    a, b, c = put(tx, 3)
    tx.execute(text("create temp table before on commit drop as select id, position from relevo.item"))
    go(tx, c, After(a))
    changed = "select i.id, i.position from relevo.item i join before b using (id) where i.position <> b.position"
    assert tx.execute(text(changed)).all() == [(c, Decimal("1.5"))]
    trail = tx.execute(text("select before, after from relevo.event where action = 'move'")).all()
    assert trail == [({"position": "3", "after": b, "before": None}, {"position": "1.5", "after": a})]


@pytest.mark.parametrize("index", range(3))
def test_a_move_onto_its_own_place_changes_and_records_nothing(tx: Connection, index: int) -> None:
    plan(tx)
    line = put(tx, 3)
    places: list[Place] = [After(line[index]), Before(line[index])]
    places += [First()] if index == 0 else [After(line[index - 1])]
    places += [Last()] if index == 2 else [Before(line[index + 1])]
    for to in places:
        go(tx, line[index], to)
    assert order(tx) == line
    assert "move" not in events(tx)


@pytest.mark.parametrize("kind", STAYS)
def test_what_is_out_or_has_ended_does_not_move(tx: Connection, kind: State) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    fixed = bring(tx, kind)
    (other,) = put(tx)
    for to in (First(), Last(), After(other), Before(other), After(fixed)):
        with pytest.raises(NotMovable, match=f"Item {fixed} is {kind}; only waiting and postponed items move"):
            go(tx, fixed, to)


@pytest.mark.parametrize("kind", STAYS)
def test_nothing_moves_next_to_what_is_out_or_gone(tx: Connection, kind: State) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    fixed = bring(tx, kind)
    (moving, *_) = put(tx, 2)
    for to in (After(fixed), Before(fixed)):
        for seen in (None, Seen(None), Seen(moving)):
            with pytest.raises(NotInLine, match=f"it is {kind}; name a waiting or postponed item of the same plan"):
                go(tx, moving, to, seen)
    assert "move" not in events(tx)


def test_a_neighbour_of_another_plan_or_none_at_all_is_refused(tx: Connection) -> None:
    plan(tx)
    plan(tx, "other")
    (mine,), (theirs,) = put(tx), put(tx, plan="other")
    with pytest.raises(NotInLine, match="in another plan"):
        go(tx, mine, After(theirs))
    with pytest.raises(NotInLine, match="not there"):
        go(tx, mine, Before(10**15))
    with pytest.raises(UnknownItem):
        go(tx, 10**15, First())


def test_what_the_person_saw_must_still_be_so(tx: Connection) -> None:
    plan(tx)
    a, b, c, d = put(tx, 4)
    for to, right in ((After(a), b), (Before(b), a), (First(), a), (Last(), c)):
        with pytest.raises(StaleOrder, match=r"The order has changed since you looked; here it is now: .* Nothing was moved") as refusal:
            go(tx, d, to, Seen(c if right != c else a))
        assert refusal.value.order == [a, b, c, d]
        with pytest.raises(StaleOrder):
            go(tx, d, to, Seen(None))
    go(tx, d, After(a), Seen(b))
    go(tx, d, Before(a), Seen(None))
    go(tx, d, After(c), Seen(None))
    go(tx, a, Last(), Seen(d))
    assert order(tx) == [b, c, d, a]


def test_a_plan_that_changed_under_the_persons_eyes_refuses_the_drop(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    a, b, c, d = put(tx, 4)
    go(tx, c, Before(a))  # somebody else
    with pytest.raises(StaleOrder) as refusal:
        go(tx, d, Before(b), Seen(c))
    assert refusal.value.order == [c, a, b, d]


def test_first_stands_behind_the_head_and_in_front_of_all_that_waits(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    head, a, b = put(tx, 3)
    run(tx)
    go(tx, b, First())
    assert order(tx) == [b, a]
    assert items.get(tx, head).position < items.get(tx, b).position < items.get(tx, a).position


def test_a_postponed_item_moves_and_wakes_at_its_new_place(tx: Connection) -> None:
    plan(tx)
    a, b, asleep = put(tx, 3)
    items.postpone(tx, asleep, TOMORROW, actor=ACTOR)
    go(tx, asleep, Before(b))
    assert state(tx, asleep) is State.POSTPONED
    items.postpone(tx, asleep, LONG_AGO, actor=ACTOR)
    assert order(tx) == [a, asleep, b]


def test_a_postponed_item_may_be_the_neighbour_and_the_gap_is_what_people_see(tx: Connection) -> None:
    plan(tx)
    a, asleep, b, moving = put(tx, 4)
    items.postpone(tx, asleep, TOMORROW, actor=ACTOR)
    go(tx, moving, After(asleep), Seen(b))
    go(tx, moving, Before(asleep), Seen(a))
    go(tx, moving, After(a), Seen(b))
    assert order(tx) == [a, moving, b]
    assert_sound(tx)


def test_moving_another_in_front_of_one_that_waits_for_its_time_lets_it_go(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    put(tx, not_before=TOMORROW)
    (ready,) = put(tx)
    assert feed(tx) is None
    go(tx, ready, First())
    fed = feed(tx)
    assert fed is not None
    assert item_of(tx, fed.id) == ready
    assert_sound(tx)
