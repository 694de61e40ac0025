"""Edit, postpone and cancel, in every state an item can be in."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from ordering import attempt, finish, head, items, plans
from ordering.errors import Invalid, NotAllowed, UnknownItem
from ordering.items import Edit
from ordering.model import OnInterrupt, Outcome, State
from tests.ordering.acts import (
    ACTOR,
    DONE,
    LONG_AGO,
    TOMORROW,
    assert_sound,
    bring,
    claim,
    events,
    feed,
    item_of,
    order,
    outcomes,
    plan,
    put,
    run,
    state,
)  # fmt: skip

OPEN = (State.WAITING, State.POSTPONED, State.DISPATCHED)
REST = tuple(each for each in State if each not in OPEN)


@pytest.fixture
def started(tx: Connection) -> Connection:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    return tx


@pytest.mark.parametrize("kind", OPEN)
def test_what_has_not_started_is_edited_and_keeps_state_and_place(started: Connection, kind: State) -> None:
    item_id = bring(started, kind)
    old = items.get(started, item_id)
    change = Edit(args=[1], kwargs={"a": 2}, title="new", kind="fix", on_interrupt=OnInterrupt.REQUEUE, max_attempts=9)
    new = items.edit(started, item_id, change, actor=ACTOR)
    assert (new.args, new.kwargs, new.title, new.kind, new.on_interrupt, new.max_attempts) == ([1], {"a": 2}, "new", "fix", "requeue", 9)
    assert (new.state, new.position, new.not_before, new.task) == (kind, old.position, old.not_before, "noop")
    before, after = started.execute(text("select before, after from relevo.event where action = 'edit'")).one()
    assert before == {"args": [], "kwargs": {}, "title": "", "kind": "", "on_interrupt": None, "max_attempts": None}
    assert after == {"args": [1], "kwargs": {"a": 2}, "title": "new", "kind": "fix", "on_interrupt": "requeue", "max_attempts": 9}


@pytest.mark.parametrize("kind", REST)
def test_what_runs_or_has_ended_is_not_edited(started: Connection, kind: State) -> None:
    item_id = bring(started, kind)
    with pytest.raises(NotAllowed, match=f"Item {item_id} is {kind}, so it cannot be edited; only waiting"):
        items.edit(started, item_id, Edit(title="new"), actor=ACTOR)
    assert "edit" not in events(started)


def test_what_is_out_and_not_claimed_runs_as_edited(started: Connection) -> None:
    (item_id,) = put(started)
    fed = feed(started)
    assert fed
    items.edit(started, item_id, Edit(args=["new"]), actor=ACTOR)
    assert claim(started, fed).args == ["new"]


def test_an_item_that_is_out_and_gets_another_task_is_taken_back_and_fed_anew(started: Connection) -> None:
    (item_id,) = put(started)
    fed = feed(started)
    assert fed
    assert items.edit(started, item_id, Edit(task="other"), actor=ACTOR).state is State.WAITING
    assert attempt.claim(started, fed.id, session_id=1) == []
    again = feed(started)
    assert again
    assert (again.task, item_of(started, again.id)) == ("other", item_id)
    assert_sound(started)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("task", Edit(task="")),
        ("task", Edit(task="\x00")),
        ("args", Edit(args=["\ud800"])),
        ("args", Edit(kwargs={"a": float("inf")})),
        ("title", Edit(title="\u200b")),
        ("kind", Edit(kind="x" * 101)),
        ("max_attempts", Edit(max_attempts=0)),
        ("max_attempts", Edit(max_attempts=1001)),
    ],
)
def test_a_value_that_cannot_be_is_refused_by_name(started: Connection, field: str, change: Edit) -> None:
    (item_id,) = put(started)
    old = items.get(started, item_id)
    with pytest.raises(Invalid) as refusal:
        items.edit(started, item_id, change, actor=ACTOR)
    assert refusal.value.field == field
    assert items.get(started, item_id) == old


@pytest.mark.parametrize("kind", OPEN)
def test_what_has_not_started_is_postponed_and_comes_back_to_its_place(started: Connection, kind: State) -> None:
    item_id = bring(started, kind)
    (behind,) = put(started)
    asleep = items.postpone(started, item_id, TOMORROW, actor=ACTOR, reason="later")
    assert (asleep.state, asleep.not_before, asleep.at_head) == (State.POSTPONED, TOMORROW, False)
    assert order(started) == [behind]
    assert head.wake_postponed(started) == set()
    started.execute(text("update relevo.item set not_before = now() where id = :id"), {"id": item_id})
    assert head.wake_postponed(started) == {asleep.plan_id}
    assert order(started) == [item_id, behind]
    assert items.get(started, item_id).not_before is None
    assert_sound(started)


def test_postponing_what_is_out_lets_the_next_one_go(started: Connection) -> None:
    first, second = put(started, 2)
    fed = feed(started)
    assert fed
    items.postpone(started, first, TOMORROW, actor=ACTOR)
    assert attempt.claim(started, fed.id, session_id=1) == []
    assert run(started).item_id == second


def test_a_time_that_has_passed_puts_the_item_back_now(started: Connection) -> None:
    item_id = bring(started, State.POSTPONED)
    woken = items.postpone(started, item_id, LONG_AGO, actor=ACTOR)
    assert (woken.state, woken.not_before) == (State.WAITING, None)


@pytest.mark.parametrize("kind", REST)
def test_what_runs_or_has_ended_is_not_postponed(started: Connection, kind: State) -> None:
    item_id = bring(started, kind)
    with pytest.raises(NotAllowed, match=f"is {kind}, so it cannot be postponed"):
        items.postpone(started, item_id, TOMORROW, actor=ACTOR)


@pytest.mark.parametrize("until", [datetime(2030, 1, 1), datetime.now(UTC) + timedelta(days=4000)])
def test_a_time_without_zone_or_out_of_sight_is_refused(started: Connection, until: datetime) -> None:
    (item_id,) = put(started)
    with pytest.raises(Invalid, match=r"^until: "):
        items.postpone(started, item_id, until, actor=ACTOR)


@pytest.mark.parametrize("kind", OPEN)
def test_what_has_not_started_is_cancelled_and_the_next_one_goes(started: Connection, kind: State) -> None:
    item_id = bring(started, kind)
    (behind,) = put(started)
    gone = items.cancel(started, item_id, actor=ACTOR, reason="not needed")
    assert (gone.state, gone.at_head, gone.attempts) == (State.CANCELLED, False, 0)
    assert gone.settled_at is not None
    assert run(started).item_id == behind
    assert_sound(started)


def test_what_runs_is_cancelled_at_once_and_keeps_the_place_until_its_body_is_gone(started: Connection) -> None:
    first, second = put(started, 2)
    claimed = run(started)
    gone = items.cancel(started, first, actor=ACTOR)
    assert (gone.state, gone.attempts, gone.tries) == (State.CANCELLED, 1, 0)
    assert outcomes(started, first) == [Outcome.INTERRUPTED]
    assert feed(started) is None
    assert finish.finish(started, claimed, DONE) is None
    assert state(started, first) is State.CANCELLED
    assert events(started, first)[-1] == "fence"
    assert run(started).item_id == second
    assert_sound(started)


@pytest.mark.parametrize("kind", [each for each in REST if each is not State.RUNNING])
def test_what_has_ended_is_not_cancelled(started: Connection, kind: State) -> None:
    item_id = bring(started, kind)
    with pytest.raises(NotAllowed, match=f"is {kind}, so it cannot be cancelled"):
        items.cancel(started, item_id, actor=ACTOR)
    assert state(started, item_id) is kind


@pytest.mark.parametrize(
    ("verb", "more"), [(items.get, {}), (items.edit, {"change": Edit()}), (items.postpone, {"until": TOMORROW}), (items.cancel, {})]
)
def test_an_unknown_item_is_named(tx: Connection, verb: Any, more: dict[str, Any]) -> None:
    with pytest.raises(UnknownItem, match="no item 777777"):
        verb(tx, 777777, **more, **({} if verb is items.get else {"actor": ACTOR}))
