"""Move: one waiting or postponed item to another place of its line; one row is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

from sqlalchemy import Connection, text

from ordering import audit, items, place, plans
from ordering.beside import NEXT, PREVIOUS, beside
from ordering.errors import NotMovable, StaleOrder
from ordering.model import After, Before, First, Item, Last, Place, State

MOVABLE = (State.WAITING, State.POSTPONED)
MOVE = text("update relevo.item set position = :position where id = :id and state in ('waiting', 'postponed') returning position")


@dataclass(frozen=True)
class Seen:
    """What the person saw on the far side of the gap: the waiting item's id, or None for the end of the line."""

    item: int | None


def move(tx: Connection, item_id: int, to: Place, *, actor: str, seen: Seen | None = None) -> Item:
    """Move a waiting or postponed item to a place of its own plan. A move to where it stands changes and records nothing.

    Raises UnknownItem, NotMovable, NotInLine; StaleOrder if `seen` is given and the gap has another neighbour now;
    position.NoRoom where items that are out leave none.
    """
    held = items.hold(tx, item_id)
    old = held.item
    if old.state not in MOVABLE:
        raise NotMovable(item_id, old.state)
    if isinstance(to, (After, Before)) and to.item == item_id:
        return old
    if seen is not None and seen.item != item_id:
        if isinstance(to, (After, Before)):
            place.gap(tx, old.plan_id, to, but=item_id)  # refuses a neighbour that is out or gone before any talk of order
        far = _far_side(tx, old, to)
        if far != seen.item:
            raise StaleOrder(_around(tx, old.plan_id))
    if _stands_there(tx, old, to):
        return old
    stood = {"position": format(old.position, "f"), **beside(tx, old.plan_id, item_id)}
    chosen = place.positions(tx, held.plan, to, 1, but=item_id)[0]
    moved = tx.execute(MOVE, {"id": item_id, "position": chosen}).scalar_one_or_none()
    if moved is None:
        raise NotMovable(item_id, "out by now")
    audit.record(
        tx,
        actor=actor,
        action="move",
        plan_id=old.plan_id,
        item_id=item_id,
        before=stood,
        after={"position": format(chosen, "f"), **_named(to)},
    )
    plans.wake(tx, old.plan_id)
    return replace(old, position=moved)


FRONT = text("select id from relevo.item where plan_id = :plan_id and state = 'waiting' and id <> :but order by position, id limit 1")
BACK = text("""
    select id from relevo.item where plan_id = :plan_id and state = 'waiting' and id <> :but
    order by position desc, id desc limit 1
""")


def _far_side(tx: Connection, moving: Item, to: Place) -> int | None:
    """The waiting item on the other side of the gap, without the moving one."""
    where = {"plan_id": moving.plan_id, "but": moving.id}
    match to:
        case First():
            found = tx.execute(FRONT, where)
        case Last():
            found = tx.execute(BACK, where)
        case After(neighbour):
            found = tx.execute(NEXT, {**where, "anchor": neighbour})
        case Before(neighbour):
            found = tx.execute(PREVIOUS, {**where, "anchor": neighbour})
        case _ as never:
            assert_never(never)
    item_id: int | None = found.scalar_one_or_none()
    return item_id


def _stands_there(tx: Connection, moving: Item, to: Place) -> bool:
    """Whether the gap that `to` names is the one the item is in already, judged on the line that people see."""
    if moving.state is not State.WAITING:
        return False
    where = {"plan_id": moving.plan_id, "but": moving.id, "anchor": moving.id}
    match to:
        case First():
            return tx.execute(PREVIOUS, where).first() is None
        case Last():
            return tx.execute(NEXT, where).first() is None
        case After(neighbour):
            return bool(tx.execute(PREVIOUS, where).scalar_one_or_none() == neighbour)
        case Before(neighbour):
            return bool(tx.execute(NEXT, where).scalar_one_or_none() == neighbour)
        case _ as never:
            assert_never(never)


ORDER = text("select id from relevo.item where plan_id = :plan_id and state = 'waiting' order by position, id limit 20")


def _around(tx: Connection, plan_id: int) -> list[int]:
    return list(tx.execute(ORDER, {"plan_id": plan_id}).scalars())


def _named(to: Place) -> dict[str, int | bool]:
    match to:
        case First():
            return {"first": True}
        case Last():
            return {"last": True}
        case After(neighbour):
            return {"after": neighbour}
        case Before(neighbour):
            return {"before": neighbour}
        case _ as never:
            assert_never(never)
