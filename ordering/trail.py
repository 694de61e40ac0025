"""Read model of the trail: who did what, the latest first, and what of it can still be taken back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from ordering.errors import Invalid, UnknownEvent
from ordering.model import Json

# Of a filtered list, how many events one page looks through; it may then be short and yet not be the last.
SCAN = 20_000
WHOLE, SHOWN = 4_000, 500  # characters of `before` and `after`: larger ones have each of their values cut in a list
#: What an item may have gone through since, so that an earlier event of it cannot be undone any more.
OVERTAKEN_BY = ("move", "postpone", "cancel", "retry", "skip", "resolve", "undo")


@dataclass(frozen=True)
class Event:
    """One line of the trail: `actor` did `action` to a plan or an item, and `reason` says why.

    `title` is the item's (or its task's name). `undoable`: it can be undone as things stand now.
    """

    id: int
    at: datetime
    actor: str
    action: str
    plan: str | None
    item: int | None
    title: str | None
    before: Json
    after: Json
    reason: str
    undoable: bool


@dataclass(frozen=True)
class Page:
    """Events, the latest first; `next` is where the following page begins, or None at the end."""

    events: Sequence[Event]
    next: int | None


# Undone is what still stands as the event left it: see `undo`, which looks again under the plan's lock.
UNDOABLE = f"""
    e.before is not null and case e.action
        when 'move' then i.state in ('waiting', 'postponed')
        when 'postpone' then case when cast(e.after ->> 'until' as timestamptz) > e.at then i.state = 'postponed'
            else i.state = 'waiting' and cast(e.before ->> 'not_before' as timestamptz) > now() end
        when 'cancel' then i.state = 'cancelled' and e.before ? 'position'
        else false
    end and not exists (
        select from relevo.event later
        where later.item_id = e.item_id and later.id > e.id and later.action in {OVERTAKEN_BY})
"""


def _cut(column: str) -> str:
    short = f"case when length(value::text) <= {SHOWN} then value else to_jsonb(left(value::text, {SHOWN}) || '…') end"
    whole = f"length(e.{column}::text) <= {WHOLE}"
    return f"case when {whole} then e.{column} else (select jsonb_object_agg(key, {short}) from jsonb_each(e.{column})) end as {column}"


ROW = "e.id, e.at, e.actor, e.action, p.name as plan, e.item_id as item, left(coalesce(nullif(i.title, ''), i.task), 200) as title"
TABLES = "relevo.event e left join relevo.plan p on p.id = e.plan_id left join relevo.item i on i.id = e.item_id"
UNDO = f"coalesce({UNDOABLE}, false) as undoable"
LINE = f"{ROW}, {_cut('before')}, {_cut('after')}, left(e.reason, 2000) as reason, {UNDO}"
ONE = text(f"select {ROW}, e.before, e.after, e.reason, {UNDO} from {TABLES} where e.id = :id")
LINES = text(f"select {LINE} from {TABLES} where e.id = any(:ids) order by e.id desc")


def event(tx: Connection, event_id: int) -> Event:
    """The event with this id, whole. Raises UnknownEvent."""
    row = tx.execute(ONE, {"id": event_id}).one_or_none()
    if row is None:
        raise UnknownEvent(event_id)
    return Event(**row._mapping)


def events(
    tx: Connection,
    *,
    limit: int,
    before: int | None = None,
    plan_id: int | None = None,
    item: int | None = None,
    actor: str | None = None,
    action: str | None = None,
    containing: str | None = None,
) -> Page:
    """Up to `limit` events, the latest first, those before the id `before`, long values cut.

    `actor` and `action` are exact, `containing` is a text in reason, actor or action, in any case.
    """
    of = [name for name, given in (("plan_id", plan_id), ("item_id", item)) if given is not None]
    scan = limit + 1 if actor is None and action is None and containing is None else SCAN
    given = {"plan_id": plan_id, "item_id": item, "before": before or 2**63 - 1, "scan": scan, "limit": limit + 1}
    found = tx.execute(text(_look(of)), {**given, "actor": actor, "action": action, "text": containing}).one()
    ids = list(found.ids)
    following = ids[limit - 1] if len(ids) > limit else found.last if scan == SCAN and found.scanned == SCAN else None
    return Page(of_ids(tx, ids[:limit]), following)


def _look(of: Sequence[str]) -> str:
    # Written anew for each filter that has an index, so that each is one range of it.
    where = "".join(f"{column} = :{column} and " for column in of)
    return f"""
        with scanned as materialized (
            select id, actor, action, reason from relevo.event where {where} id < :before order by id desc limit :scan
        ), found as (
            select id from scanned
            where (cast(:actor as text) is null or actor = :actor) and (cast(:action as text) is null or action = :action)
                and (cast(:text as text) is null or strpos(lower(concat_ws(' ', actor, action, reason)), lower(:text)) > 0)
            order by id desc limit :limit
        )
        select array(select id from found order by id desc) as ids, (select count(*) from scanned) as scanned,
            (select min(id) from scanned) as last
    """


def of_ids(tx: Connection, ids: Sequence[int]) -> list[Event]:
    """The events with these ids, the latest first, long values cut; those that are not there are left out."""
    return [Event(**row._mapping) for row in tx.execute(LINES, {"ids": ids})] if ids else []


def parsed(cursor: str) -> int:
    """The `next` of a page from its text. Raises Invalid."""
    if not re.fullmatch("[0-9]{1,18}", cursor, re.ASCII):
        raise Invalid("cursor", f"{cursor[:80]!r} is none; use the one that the page before gave.")
    return int(cursor)


LATEST = text("select max(id) from relevo.event where item_id = :item and action = any(:actions)")


def latest(tx: Connection, item: int, *actions: str) -> int | None:
    """The id of the latest event of the item that is one of `actions`."""
    found: int | None = tx.execute(LATEST, {"item": item, "actions": list(actions)}).scalar_one()
    return found
