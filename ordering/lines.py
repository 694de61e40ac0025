"""Read models of a plan's items as lists: the line page by page, what is out, unresolved, postponed, and settled last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, TextClause, text

from ordering.errors import Invalid
from ordering.items import STATE
from ordering.model import State

PAGE_LIMIT = 10_000  # rows of one page at the most
TEXT_LIMIT = 500  # characters of a title, an error or the arguments in a list; `history` has them whole


@dataclass(frozen=True)
class ItemLine:
    """An item as one line of a list, long texts cut to TEXT_LIMIT. `since` is when it came into this state.

    `session` is the session that runs it (or ran it, while it is interrupted); `pending` says that an interruption is not
    final: its process may take it up again, or it may be requeued.
    """

    id: int
    plan: str
    position: Decimal
    state: State
    at_head: bool
    task: str
    arguments: str
    title: str
    kind: str
    entry: str | None
    repairs: int | None
    not_before: datetime | None
    attempts: int
    tries: int
    error: str | None
    session: int | None
    pending: bool
    since: datetime


COLUMNS = tuple(field.name for field in fields(ItemLine))
LINE = f"""
    i.id, p.name as plan, i.position, {STATE} as state, i.at_head, i.task,
    left(case when i.kwargs = '{{}}' then i.args::text else i.kwargs::text end, {TEXT_LIMIT}) as arguments,
    left(i.title, {TEXT_LIMIT}) as title, i.kind, i.entry, i.repairs, i.not_before, i.attempts, i.tries,
    left(i.error, {TEXT_LIMIT}) as error, d.session_id as session, i.state = 'interrupted' and d.ended_at is null as pending,
    coalesce(i.settled_at, case i.state
        when 'dispatched' then coalesce(d.claimed_at, d.created_at)
        when 'failed' then i.unresolved_at
        when 'interrupted' then i.unresolved_at
    end, i.created_at) as since
    from relevo.item i join relevo.plan p on p.id = i.plan_id left join relevo.dispatch d on d.id = i.dispatch_id
"""


def line(row: Row[Any]) -> ItemLine:
    """An ItemLine from a row that has the columns of LINE."""
    return ItemLine(**{**{name: row._mapping[name] for name in COLUMNS}, "state": State(row.state)})


@dataclass(frozen=True)
class Cursor:
    """Where the next page of a line begins: behind this position and id. `str()` and `parse` are its text form."""

    position: Decimal
    id: int

    def __str__(self) -> str:
        return f"{self.position:f}:{self.id}"

    @classmethod
    def parse(cls, written: str) -> Cursor:
        """The cursor that `str()` wrote. Raises Invalid."""
        position, _, item_id = written.partition(":")
        try:
            cursor = cls(Decimal(position), int(item_id))
        except (ArithmeticError, ValueError):
            cursor = None
        if cursor is None or not cursor.position.is_finite() or abs(cursor.position) > 10**15 or not 0 <= cursor.id < 2**63:
            raise Invalid("cursor", f"{written[:80]!r} is none; use the one that the page before gave.")
        return cursor


@dataclass(frozen=True)
class Page:
    """Items in their order; `next` is where the following page begins, or None at the end."""

    items: Sequence[ItemLine]
    next: Cursor | None


PAGE = text(f"""
    select {LINE} where i.plan_id = :plan_id and i.state = 'waiting' and (i.position, i.id) > (:position, :id)
    order by i.position, i.id limit :limit
""")
BEFORE_ALL = Cursor(Decimal(-(10**15)), 0)


def waiting(tx: Connection, plan_id: int, *, limit: int, after: Cursor | None = None) -> Page:
    """Up to `limit` items of the line (what waits) in their order, behind `after` if that is given. Raises Invalid."""
    if not 0 <= limit <= PAGE_LIMIT:
        raise Invalid("limit", f"{limit} is out of range; use 0 to {PAGE_LIMIT}.")
    begin = after or BEFORE_ALL
    rows = tx.execute(PAGE, {"plan_id": plan_id, "position": begin.position, "id": begin.id, "limit": limit + 1}).all()
    found = [line(row) for row in rows[:limit]]
    return Page(found, Cursor(found[-1].position, found[-1].id) if found and len(rows) > limit else None)


UNRESOLVED = text(f"""
    select {LINE} where i.plan_id = :plan_id and i.state in ('failed', 'interrupted')
    order by i.position, i.id limit :limit
""")
ASLEEP = text(f"select {LINE} where i.plan_id = :plan_id and i.state = 'postponed' order by i.not_before, i.id limit :limit")
OUT = text(f"""
    select {LINE} where d.plan_id = :plan_id and d.ended_at is null and i.settled_at is null and i.state = 'dispatched'
    order by i.position, i.id limit :limit
""")
ENDED = text(f"""
    select {LINE} where i.plan_id = :plan_id and i.settled_at is not null
    order by i.settled_at desc, i.id desc limit :limit
""")


def unresolved(tx: Connection, plan_id: int, *, limit: int = PAGE_LIMIT) -> list[ItemLine]:
    """Failed and interrupted items, in their order."""
    return _lines(tx, UNRESOLVED, plan_id, limit)


def postponed(tx: Connection, plan_id: int, *, limit: int = PAGE_LIMIT) -> list[ItemLine]:
    """Postponed items, the next to come back first."""
    return _lines(tx, ASLEEP, plan_id, limit)


def out(tx: Connection, plan_id: int, *, limit: int = PAGE_LIMIT) -> list[ItemLine]:
    """What is dispatched or running, in its order."""
    return _lines(tx, OUT, plan_id, limit)


def settled(tx: Connection, plan_id: int, *, limit: int) -> list[ItemLine]:
    """What was settled last, the latest first."""
    return _lines(tx, ENDED, plan_id, limit)


def _lines(tx: Connection, statement: TextClause, plan_id: int, limit: int) -> list[ItemLine]:
    return [line(row) for row in tx.execute(statement, {"plan_id": plan_id, "limit": limit})]


OF_IDS = text(f"select {LINE} where i.id = any(:ids) order by i.plan_id, i.position, i.id")


def of_ids(tx: Connection, item_ids: Sequence[int]) -> list[ItemLine]:
    """These items, by plan and in their order; those that there are not are left out."""
    return [line(row) for row in tx.execute(OF_IDS, {"ids": list(item_ids)})] if item_ids else []
