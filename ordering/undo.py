"""Undo: take back a move, a postponement, or the cancel of what had not started, while that has had no effect yet.

A decision (retry, skip, resolve) is not undone: the line may have gone on by it at once. An undo is an event of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, text

from ordering import audit, clock, items, place, plans, trail
from ordering.errors import Invalid, NotUndoable, UnknownEvent, UnknownItem
from ordering.items import Held
from ordering.model import After, Before, First, Item, Place, State

MOST = 1_000  # events of one call
EVENT = text("select id, at, action, item_id, before, after from relevo.event where id = :id")
LATER = text("""
    select action, actor from relevo.event where item_id = :item_id and id > :id and action = any(:actions) order by id limit 1
""")


def undo(tx: Connection, event_id: int, *, actor: str, reason: str = "") -> Item:
    """Undo what the event tells of, and return its item.

    A moved or cancelled item goes back to its old place: where its neighbour of then still stands, else where its old position
    falls in today's line. Raises UnknownEvent; NotUndoable, which says why it is too late.
    """
    event = tx.execute(EVENT, {"id": event_id}).one_or_none()
    if event is None:
        raise UnknownEvent(event_id)
    if event.action not in ("move", "postpone", "cancel") or event.item_id is None or event.before is None:
        raise NotUndoable(event_id, f"only a person's move, postpone and cancel can, and this is {_named(event.action)}")
    try:
        held = items.hold(tx, event.item_id)
    except UnknownItem:
        raise NotUndoable(event_id, f"item {event.item_id} is not kept any more") from None
    later = tx.execute(LATER, {"item_id": event.item_id, "id": event_id, "actions": list(trail.OVERTAKEN_BY)}).first()
    if later is not None:
        what = "undone already" if later.action == "undo" else f"{DONE.get(later.action, later.action)} since, by {later.actor}"
        raise NotUndoable(event_id, f"item {event.item_id} was {what}")
    back = {"move": _moved, "postpone": _postponed, "cancel": _cancelled}[event.action](tx, event, held)
    written = tx.execute(
        WRITE, {"id": held.item.id, "was": held.item.state, "state": back.state, "position": back.position, "until": back.until}
    )
    if written.first() is None:
        raise NotUndoable(event_id, f"item {event.item_id} is {_now(held.item)} by now")
    old = held.item
    audit.record(
        tx,
        actor=actor,
        action="undo",
        plan_id=old.plan_id,
        item_id=old.id,
        before={"state": old.state, "position": format(old.position, "f"), "not_before": old.not_before},
        after={
            "event": event_id,
            "undone": event.action,
            "state": back.state,
            "position": format(back.position, "f"),
            "not_before": back.until,
        },
        reason=reason,
    )
    if back.state is State.WAITING and old.state is not State.WAITING:
        plans.autostart(tx, held.plan, actor=actor)
    plans.wake(tx, old.plan_id)
    return items.get(tx, old.id)


def undo_many(tx: Connection, event_ids: Sequence[int], *, actor: str, reason: str = "") -> list[Item]:
    """Undo several events, the latest first, all or none; their items in that order. Raises as `undo`, and Invalid for too many."""
    ordered = sorted(set(event_ids), reverse=True)
    if len(ordered) > MOST:
        raise Invalid("events", f"are {len(ordered)}; at most {MOST} can be undone at once.")
    return [undo(tx, each, actor=actor, reason=reason) for each in ordered]


DONE = {
    "move": "moved",
    "postpone": "postponed",
    "cancel": "cancelled",
    "retry": "retried",
    "skip": "skipped",
    "resolve": "resolved",
}


@dataclass(frozen=True)
class Back:
    """What the item is given back: state, place, and until when it is put off."""

    state: State
    position: Decimal
    until: datetime | None


# What the item was read as is the guard; an item that ran holds a dispatch and is never touched.
WRITE = text("""
    update relevo.item set state = :state, position = :position, not_before = cast(:until as timestamptz), settled_at = null,
        due_at = case when :state = 'waiting' and state <> 'waiting' then now() else due_at end
    where id = :id and state = :was and state in ('waiting', 'postponed', 'cancelled') and dispatch_id is null and not at_head
    returning id
""")


def _moved(tx: Connection, event: Row[Any], held: Held) -> Back:
    _refuse_unless(event, held.item, State.WAITING, State.POSTPONED)
    return Back(held.item.state, _position(tx, event, held), held.item.not_before)


def _postponed(tx: Connection, event: Row[Any], held: Held) -> Back:
    put_off = datetime.fromisoformat(event.after["until"]) > event.at
    if put_off and held.item.state is State.WAITING:
        raise NotUndoable(event.id, f"item {held.item.id} is back in the line already")
    _refuse_unless(event, held.item, State.POSTPONED if put_off else State.WAITING)
    state, until = _state_before(tx, event)
    if not put_off and state is not State.POSTPONED:
        raise NotUndoable(event.id, f"the time until which item {held.item.id} was postponed is over")
    return Back(state, held.item.position, until)


def _cancelled(tx: Connection, event: Row[Any], held: Held) -> Back:
    if event.before.get("position") is None:
        raise NotUndoable(event.id, f"item {held.item.id} had started, and its body was stopped")
    _refuse_unless(event, held.item, State.CANCELLED)
    if held.item.entry is not None and tx.execute(ENTRY, {"plan_id": held.plan.id, "entry": held.item.entry}).first() is not None:
        raise NotUndoable(event.id, f"its entry {held.item.entry!r} has another item by now")
    state, until = _state_before(tx, event)
    return Back(state, _position(tx, event, held), until)


ENTRY = text("select from relevo.item where plan_id = :plan_id and entry = :entry and settled_at is null limit 1")


def _refuse_unless(event: Row[Any], item: Item, *states: State) -> None:
    if item.state not in states:
        raise NotUndoable(event.id, f"item {item.id} is {_now(item)} by now")


def _now(item: Item) -> str:
    return "handed out" if item.state is State.DISPATCHED else str(item.state)


def _named(action: str) -> str:
    return f"{'an' if action[0] in 'aeiou' else 'a'} {action}"


def _state_before(tx: Connection, event: Row[Any]) -> tuple[State, datetime | None]:
    """Waiting or postponed, and until when: what is handed out again is fed anew, and a time that is over is no time."""
    written = event.before.get("not_before")
    until = None if written is None else datetime.fromisoformat(written)
    if until is not None and until <= clock.now(tx):
        until = None
    postponed = event.before.get("state") == State.POSTPONED and until is not None
    return State.POSTPONED if postponed else State.WAITING, until


def _position(tx: Connection, event: Row[Any], held: Held) -> Decimal:
    """A position in the gap that is the old place today: the old one itself, if it lies there."""
    old = Decimal(event.before["position"])
    to = _old_place(tx, event, held, old)
    gap = place.gap(tx, held.plan.id, to, but=held.item.id)
    if (gap.low is None or gap.low < old) and (gap.high is None or old < gap.high):
        return old
    return place.positions(tx, held.plan, to, 1, but=held.item.id)[0]


# A neighbour that nobody moved since, and that is still in the line, says better where the place was than a number does: numbers
# are given anew where a gap got too fine.
STANDS = text("""
    select id from relevo.item i where id = :id and plan_id = :plan_id and state in ('waiting', 'postponed') and not exists (
        select from relevo.event e where e.item_id = i.id and e.id > :event and e.action in ('move', 'undo'))
""")
BELOW = text("""
    select id from relevo.item where plan_id = :plan_id and state = 'waiting' and id <> :but and position < :position
    order by position desc, id desc limit 1
""")


def _old_place(tx: Connection, event: Row[Any], held: Held, old: Decimal) -> Place:
    beside = ((event.before.get("after"), After), (event.before.get("before"), Before))
    for neighbour, side in beside:
        if neighbour is not None:
            found = tx.execute(STANDS, {"id": neighbour, "plan_id": held.plan.id, "event": event.id}).scalar_one_or_none()
            if found is not None:
                return side(found)
    below = tx.execute(BELOW, {"plan_id": held.plan.id, "but": held.item.id, "position": old}).scalar_one_or_none()
    return First() if below is None else After(below)
