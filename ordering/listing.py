"""A plan's items page by page, of one state or group of states, looked through by kind and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text

from ordering import lines
from ordering.errors import Invalid
from ordering.lines import ItemLine
from ordering.model import SETTLED, State

# Of a filtered list, how many rows one page looks through: about 30 ms. A page may then be short and yet not be the last.
SCAN = 20_000


@dataclass(frozen=True)
class Order:
    """How a list runs: by which column, of which type, forwards or backwards."""

    column: str
    type: str
    forwards: bool


IN_LINE = Order("i.position", "numeric", forwards=True)
LATEST_FIRST = Order("i.settled_at", "timestamptz", forwards=False)
OF_PLAN = "i.plan_id = :plan_id"
OUT = "d.plan_id = :plan_id and d.ended_at is null and i.settled_at is null and i.state = 'dispatched' and d.claimed_at is"
UNSETTLED: dict[str, str] = {
    "unsettled": f"{OF_PLAN} and i.settled_at is null",
    "unresolved": f"{OF_PLAN} and i.state in ('failed', 'interrupted')",
    **{state: f"{OF_PLAN} and i.state = '{state}'" for state in (State.WAITING, State.POSTPONED, State.FAILED, State.INTERRUPTED)},
    State.DISPATCHED: f"{OUT} null",
    State.RUNNING: f"{OUT} not null",
}
ENDED: dict[str, str] = {
    "settled": f"{OF_PLAN} and i.settled_at is not null",
    **{state: f"{OF_PLAN} and i.settled_at is not null and i.state = '{state}'" for state in SETTLED},
}
CHOICES = [str(each) for each in (*UNSETTLED, *ENDED)]


@dataclass(frozen=True)
class Listed:
    """Items in their order; `next` is the cursor of the following page, or None at the end."""

    items: Sequence[ItemLine]
    next: str | None


def _look(where: str, order: Order, *, after: bool) -> str:
    forth, back, beyond = ("", "desc", ">") if order.forwards else ("desc", "", "<")
    # Written anew with and without a cursor, so that each is one range of an index.
    behind = f"and ({order.column}, i.id) {beyond} (cast(:place as {order.type}), :id)" if after else ""
    return f"""
        with scanned as materialized (
            select i.id, {order.column} as place, i.title, i.kind, i.task, i.key
            from relevo.item i left join relevo.dispatch d on d.id = i.dispatch_id
            where {where} {behind}
            order by {order.column} {forth}, i.id {forth} limit :scan
        ), found as (
            select id, place from scanned
            where (cast(:kind as text) is null or kind = :kind) and (cast(:text as text) is null
                or strpos(lower(concat_ws(' ', title, task, key)), lower(:text)) > 0)
            order by place {forth}, id {forth} limit :limit
        )
        select array(select id from found order by place {forth}, id {forth}) as ids, (select count(*) from scanned) as scanned,
            last.place, last.id
        from (select) one left join (select place, id from scanned order by place {back}, id {back} limit 1) last on true
    """


LINES = text(f"select {lines.LINE} where i.id = any(:ids)")


def items(
    tx: Connection,
    plan_id: int,
    *,
    state: str = "unsettled",
    kind: str | None = None,
    containing: str | None = None,
    limit: int,
    after: str | None = None,
) -> Listed:
    """Up to `limit` items of one of CHOICES: what is not settled in the line's order, what is settled latest first.

    `kind` is an exact word; `containing` a text in title, task or key, in any case. `after` is the cursor of the page before.
    Raises Invalid naming `state` or `cursor`.
    """
    if state not in CHOICES:
        raise Invalid("state", f"{state[:40]!r} is none; use one of {', '.join(CHOICES)}.")
    where, order = (UNSETTLED[state], IN_LINE) if state in UNSETTLED else (ENDED[state], LATEST_FIRST)
    place, item_id = (None, 0) if after is None else _parsed(after, order)
    scan = limit + 1 if kind is None and containing is None else SCAN
    given: dict[str, object] = {"plan_id": plan_id, "scan": scan, "kind": kind, "text": containing, "limit": limit + 1}
    if after is not None:
        given |= {"place": place, "id": item_id}
    looked: Any = tx.execute(text(_look(where, order, after=after is not None)), given).one()
    shown = looked.ids[:limit]
    by_id = {row.id: lines.line(row) for row in tx.execute(LINES, {"ids": shown})}
    found = [by_id[each] for each in shown if each in by_id]
    if len(looked.ids) > limit and found:
        last = found[-1]
        return Listed(found, _written(last.position if order.forwards else last.since, last.id))
    return Listed(found, _written(looked.place, looked.id) if scan == SCAN and looked.scanned == SCAN else None)


def _written(place: Decimal | datetime, item_id: int) -> str:
    return f"{place:f}~{item_id}" if isinstance(place, Decimal) else f"{place.isoformat()}~{item_id}"


def _parsed(cursor: str, order: Order) -> tuple[Decimal | datetime, int]:
    if order.forwards:
        parsed = lines.Cursor.parse(cursor.replace("~", ":"))
        return parsed.position, parsed.id
    place, _, item_id = cursor.partition("~")
    try:
        when, number = datetime.fromisoformat(place), int(item_id)
    except ValueError:
        when, number = None, 0
    if when is None or when.tzinfo is None or not 0 <= number < 2**63:
        raise Invalid("cursor", f"{cursor[:80]!r} is none; use the one that the page before gave.")
    return when, number
