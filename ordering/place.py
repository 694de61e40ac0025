"""Where in the line: the gap that a place names, and positions inside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import assert_never

from sqlalchemy import Connection, text

from ordering import position
from ordering.errors import NotInLine
from ordering.items import STATE, TABLES
from ordering.model import After, Before, First, Last, Place, Plan

# The line that a person sees is what waits. Positions are distinct among all unsettled items, also those out of the line.
FIRST_WAITING = text("""
    select id, position from relevo.item
    where plan_id = :plan_id and state = 'waiting' and id <> :but order by position, id limit 1
""")
LAST_UNSETTLED = text("""
    select position from relevo.item
    where plan_id = :plan_id and settled_at is null and id <> :but order by position desc limit 1
""")
ANCHOR = text(f"select i.plan_id, i.position, {STATE} as state from {TABLES} where i.id = :id")
BELOW = text("""
    select position from relevo.item
    where plan_id = :plan_id and settled_at is null and id <> :but and position < :position order by position desc limit 1
""")
ABOVE = text("""
    select position from relevo.item
    where plan_id = :plan_id and settled_at is null and id <> :but and position > :position order by position limit 1
""")


@dataclass(frozen=True)
class Gap:
    """The open interval in which a position is to be found; None is an open end."""

    low: Decimal | None
    high: Decimal | None


def gap(tx: Connection, plan_id: int, place: Place, *, but: int = 0) -> Gap:
    """The gap that `place` names in the locked plan, leaving the moving item `but` out of account.

    Raises NotInLine if the neighbour is not a waiting or postponed item of this plan.
    """

    def one(statement: object, **parameters: object) -> Decimal | None:
        found: Decimal | None = tx.execute(statement, {"plan_id": plan_id, "but": but, **parameters}).scalar_one_or_none()  # type: ignore[call-overload]
        return found

    match place:
        case Last():
            return Gap(one(LAST_UNSETTLED), None)
        case First():
            first = tx.execute(FIRST_WAITING, {"plan_id": plan_id, "but": but}).one_or_none()
            if first is None:
                return Gap(one(LAST_UNSETTLED), None)
            return Gap(one(BELOW, position=first.position), first.position)
        case After(neighbour):
            at = _anchor(tx, plan_id, neighbour)
            return Gap(at, one(ABOVE, position=at))
        case Before(neighbour):
            at = _anchor(tx, plan_id, neighbour)
            return Gap(one(BELOW, position=at), at)
        case _ as never:
            assert_never(never)


def _anchor(tx: Connection, plan_id: int, neighbour: int) -> Decimal:
    row = tx.execute(ANCHOR, {"id": neighbour}).one_or_none()
    if row is None:
        raise NotInLine(neighbour, "not there")
    if row.plan_id != plan_id:
        raise NotInLine(neighbour, "in another plan")
    if row.state not in ("waiting", "postponed"):
        raise NotInLine(neighbour, row.state)
    found: Decimal = row.position
    return found


FROM_POSITION = text("""
    select id from relevo.item where plan_id = :plan_id and state = 'waiting' and position >= :position and not id = any(:but)
    order by position, id limit 1
""")


def at(tx: Connection, plan_id: int, wanted: Decimal, *, but: Sequence[int]) -> Place:
    """The place of the number `wanted` in the line, in front of what stands there; `but` are the items that move."""
    found = tx.execute(FROM_POSITION, {"plan_id": plan_id, "position": wanted, "but": list(but)}).scalar_one_or_none()
    return Last() if found is None else Before(found)


IN_ORDER = text("select id from relevo.item where id = any(:ids) order by position, id")


def in_order(tx: Connection, item_ids: Sequence[int]) -> list[int]:
    """The items in the order in which they stand; those that there are not come last."""
    found = list(tx.execute(IN_ORDER, {"ids": list(item_ids)}).scalars())
    return found + [each for each in item_ids if each not in set(found)]


AROUND = text("""
    (select id, position, state not in ('waiting', 'postponed') as fixed from relevo.item
     where plan_id = :plan_id and settled_at is null and id <> :but and position <= :low order by position desc limit :reach)
    union all
    (select id, position, state not in ('waiting', 'postponed') as fixed from relevo.item
     where plan_id = :plan_id and settled_at is null and id <> :but and position > :low order by position limit :reach)
""")
REWRITE = text("""
    update relevo.item set position = new.position
    from unnest(cast(:ids as bigint[]), cast(:positions as numeric[])) as new (id, position)
    where item.id = new.id and item.state in ('waiting', 'postponed')
""")


NEXT = text("select nextval('relevo.stream_position') from generate_series(1, :count)")


def _in_stream(tx: Connection, plan_id: int, place: Place, count: int, *, but: int) -> list[Decimal]:
    """Positions that no open transaction can hold: whole ones above 0 come from the sequence, and others are taken in the gaps."""
    found = Gap(None, None) if isinstance(place, Last) else gap(tx, plan_id, place, but=but)
    if found.high is None:
        return [Decimal(each) for each in tx.execute(NEXT, {"count": count}).scalars()]
    if found.low is None:
        return position.between_many(None, min(found.high, Decimal(1)), count)
    low = max(found.low, found.high.to_integral_value(ROUND_CEILING) - 1)
    chosen = position.between_many(low, found.high, count)
    if any(position.too_fine(one) for one in chosen):
        raise position.NoRoom("There is no room for so many items at this place of a stream; choose another place.")
    return chosen


def positions(tx: Connection, plan: Plan, place: Place, count: int, *, but: int = 0) -> list[Decimal]:
    """`count` increasing positions at `place` in the plan; tidies a serial line around the gap first when it got too fine.

    The plan is locked, but for the end of a stream. Tidying changes neither the visible order nor anything that is out.
    Raises NotInLine; position.NoRoom between items that are out, or where a stream's gap got too fine.
    """
    plan_id = plan.id
    if not plan.serial:
        return _in_stream(tx, plan_id, place, count, but=but)
    found = gap(tx, plan_id, place, but=but)
    chosen = position.between_many(found.low, found.high, count)
    if any(position.too_fine(one) for one in chosen):
        tidy(tx, plan_id, found, but=but)
        found = gap(tx, plan_id, place, but=but)
        chosen = position.between_many(found.low, found.high, count)
    if any(position.too_fine(one) for one in chosen):
        raise position.NoRoom("There is no room for so many items at this place; add them last and move them.")
    return chosen


def tidy(tx: Connection, plan_id: int, around: Gap, *, but: int) -> None:
    """Rewrite the positions next to the gap so that there is room again, reaching as far as needed."""
    reach = 64
    low = around.low if around.low is not None else -position.LIMIT
    while True:
        rows = tx.execute(AROUND, {"plan_id": plan_id, "but": but, "low": low, "reach": reach}).all()
        line = sorted(((row.id, row.position, row.fixed) for row in rows), key=lambda each: each[1])
        below = sum(1 for each in line if each[1] <= low)
        new = position.tidy(line, below, more_left=below == reach, more_right=len(line) - below == reach)
        if new is not None:
            if new:
                tx.execute(REWRITE, {"ids": list(new), "positions": list(new.values())})
            return
        reach *= 4
