"""Two verbs at once: the second waits for the first, and then sees what the first committed."""

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, Engine

from ordering import add, attempt, finish, items, move, plans
from ordering.errors import NotAllowed, NotMovable
from ordering.model import After, Claimed, Dispatch, First, NewItem, State
from tests.ordering.acts import (
    ACTOR,
    BROKEN,
    DONE,
    TOMORROW,
    assert_sound,
    dead_session,
    feed,
    item_of,
    order,
    plan,
    put,
    run,
    state,
)
from tests.ordering.rivals import race


@pytest.fixture
def line(engine: Engine) -> list[int]:
    """The items of a started plan of three."""
    with engine.begin() as tx:
        plan(tx)
        plans.start(tx, "line", actor=ACTOR)
        return put(tx, 3)


def check(engine: Engine) -> None:
    with engine.begin() as tx:
        assert_sound(tx)


def fed_item(tx: Connection) -> int | None:
    fed = feed(tx)
    return item_of(tx, fed.id) if fed else None


def running(engine: Engine) -> Claimed:
    with engine.begin() as tx:
        return run(tx)


def refused(verb: Callable[[Connection], object]) -> Callable[[Connection], str]:
    def tried(tx: Connection) -> str:
        with pytest.raises((NotAllowed, NotMovable)) as refusal:
            verb(tx)
        return str(refusal.value)

    return tried


def test_a_feed_behind_a_move_hands_out_what_was_moved_to_the_front(engine: Engine, line: list[int]) -> None:
    assert race(engine, lambda tx: move.move(tx, line[2], First(), actor=ACTOR), fed_item) == line[2]
    check(engine)


def test_a_move_behind_a_feed_finds_its_item_out(engine: Engine, line: list[int]) -> None:
    second = refused(lambda tx: move.move(tx, line[0], After(line[2]), actor=ACTOR))
    assert "dispatched; only waiting" in race(engine, feed, second)
    check(engine)


def test_a_feed_behind_a_feed_hands_out_nothing(engine: Engine, line: list[int]) -> None:
    assert race(engine, feed, fed_item) is None
    check(engine)


@pytest.mark.parametrize(("ended", "next_one"), [(DONE, 1), (BROKEN, None)])
def test_a_feed_behind_a_finish_sees_how_it_ended(engine: Engine, line: list[int], ended: object, next_one: int | None) -> None:
    claimed = running(engine)
    found = race(engine, lambda tx: finish.finish(tx, claimed, ended), fed_item)  # type: ignore[arg-type]
    assert found == (None if next_one is None else line[next_one])
    check(engine)


def test_a_finish_behind_a_cancel_changes_nothing(engine: Engine, line: list[int]) -> None:
    claimed = running(engine)
    assert race(engine, lambda tx: items.cancel(tx, line[0], actor=ACTOR), lambda tx: finish.finish(tx, claimed, DONE)) is None
    with engine.begin() as tx:
        assert state(tx, line[0]) is State.CANCELLED
        assert fed_item(tx) == line[1]
    check(engine)


def test_a_cancel_behind_a_finish_is_refused(engine: Engine, line: list[int]) -> None:
    claimed = running(engine)
    second = refused(lambda tx: items.cancel(tx, line[0], actor=ACTOR))
    assert "succeeded" in race(engine, lambda tx: finish.finish(tx, claimed, DONE), second)
    check(engine)


def out(engine: Engine) -> tuple[Dispatch, int]:
    with engine.begin() as tx:
        fed = feed(tx)
        assert fed
        return fed, dead_session(tx)


@pytest.mark.parametrize(
    "person",
    [
        lambda tx, item: items.cancel(tx, item, actor=ACTOR),
        lambda tx, item: items.postpone(tx, item, TOMORROW, actor=ACTOR),
        lambda tx, item: items.edit(tx, item, items.Edit(task="other"), actor=ACTOR),
    ],
)
def test_a_claim_behind_a_person_finds_nothing(engine: Engine, line: list[int], person: Callable[[Connection, int], object]) -> None:
    fed, mine = out(engine)
    assert race(engine, lambda tx: person(tx, line[0]), lambda tx: attempt.claim(tx, fed.id, session_id=mine)) == []
    check(engine)


def test_a_claim_behind_an_edit_runs_what_was_edited(engine: Engine, line: list[int]) -> None:
    fed, mine = out(engine)
    change = items.Edit(args=["new"])
    edit = lambda tx: items.edit(tx, line[0], change, actor=ACTOR)  # noqa: E731
    (claimed,) = race(engine, edit, lambda tx: attempt.claim(tx, fed.id, session_id=mine))
    assert claimed.args == ["new"]


def test_a_cancel_behind_a_claim_stops_what_runs(engine: Engine, line: list[int]) -> None:
    fed, mine = out(engine)
    gone = race(engine, lambda tx: attempt.claim(tx, fed.id, session_id=mine), lambda tx: items.cancel(tx, line[0], actor=ACTOR))
    assert (gone.state, gone.attempts, gone.at_head) == (State.CANCELLED, 1, True)
    check(engine)


def test_a_claim_behind_a_claim_is_a_second_copy(engine: Engine, line: list[int]) -> None:
    fed, mine = out(engine)
    with engine.begin() as tx:
        other = dead_session(tx)
    first = lambda tx: attempt.claim(tx, fed.id, session_id=mine)  # noqa: E731
    assert race(engine, first, lambda tx: attempt.claim(tx, fed.id, session_id=other)) == []
    check(engine)


def test_two_adds_into_one_gap_stand_one_behind_the_other(engine: Engine, line: list[int]) -> None:
    def into(tx: Connection) -> int:
        return add.add(tx, "line", NewItem("noop"), actor=ACTOR, to=After(line[0])).id

    made: list[int] = []
    later = race(engine, lambda tx: made.append(into(tx)), into)
    with engine.begin() as tx:
        assert order(tx) == [line[0], later, *made, *line[1:]]
    check(engine)


def test_two_adds_of_one_key_are_one_item(engine: Engine, line: list[int]) -> None:
    def keyed(tx: Connection) -> add.Added:
        return add.add(tx, "line", NewItem("noop", key="k"), actor=ACTOR)

    made: list[add.Added] = []
    again = race(engine, lambda tx: made.append(keyed(tx)), keyed)
    assert (again.id, again.new) == (made[0].id, False)


def test_a_drain_behind_an_add_finds_the_new_item(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)
        plans.start(tx, "line", actor=ACTOR)
    made: list[int] = []
    assert race(engine, lambda tx: made.extend(put(tx)), fed_item) == made[0]
