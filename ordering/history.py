"""Read model of one item: what happened to it, try by try, what it printed, and who did what to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from ordering import items
from ordering.model import Item, Json, Outcome, State

LAST = 200  # attempts and events that are shown, the latest ones


@dataclass(frozen=True)
class Output:
    """What an attempt printed: its beginning and its end, and how many bytes between them were left out."""

    head: str
    tail: str
    left_out: int


@dataclass(frozen=True)
class AttemptView:
    """One try. `outcome` and `ended_at` are None while it runs; `counts` tells whether it used up a try."""

    number: int
    started_at: datetime
    ended_at: datetime | None
    outcome: Outcome | None
    counts: bool
    reason: str
    error: str | None
    session: int | None
    worker: str | None
    host: str | None
    pid: int | None
    output: Output | None


@dataclass(frozen=True)
class EventView:
    """One line of the trail."""

    at: datetime
    actor: str
    action: str
    before: Json
    after: Json
    reason: str


@dataclass(frozen=True)
class History:
    """An item with its latest LAST attempts and events, oldest first; `now` is the database's clock."""

    item: Item
    now: datetime
    dispatched_at: datetime | None
    attempts: Sequence[AttemptView]
    events: Sequence[EventView]


# Every try that ended. One that succeeded in a stream has no row of its own: its item says when, and in which dispatch.
EVERY = """
    select item_id, number, dispatch_id, session_id, started_at, ended_at, outcome, counts, reason, error from relevo.attempt
    union all
    select i.id, i.attempts, i.ended_dispatch, d.session_id, coalesce(i.started_at, i.settled_at), i.settled_at, 'succeeded', true, '', null
    from relevo.item i join relevo.plan p on p.id = i.plan_id left join relevo.dispatch d on d.id = i.ended_dispatch
    where p.concurrency > 1 and i.state = 'succeeded'
"""
ATTEMPTS = text(f"""
    select a.number, a.started_at, a.ended_at, a.outcome, a.counts, a.reason, a.error, a.session_id, s.worker, s.host, s.pid,
        o.head, o.tail, o.left_out
    from ({EVERY}) a left join relevo.session s on s.id = a.session_id
    left join relevo.output o on o.item_id = a.item_id and o.attempt = a.number
    where a.item_id = :id order by a.number desc limit :limit
""")
RUNNING = text("""
    select i.attempts + 1 as number, d.claimed_at as started_at, null as ended_at, null as outcome, true as counts, '' as reason,
        null as error, d.session_id, s.worker, s.host, s.pid, o.head, o.tail, o.left_out
    from relevo.item i join relevo.dispatch d on d.id = i.dispatch_id left join relevo.session s on s.id = d.session_id
    left join relevo.output o on o.item_id = i.id and o.attempt = i.attempts + 1
    where i.id = :id
""")
EVENTS = text("select at, actor, action, before, after, reason from relevo.event where item_id = :id order by id desc limit :limit")
MOMENT = text("""
    select now() as now, (
        select d.created_at from relevo.dispatch d join relevo.item i on i.dispatch_id = d.id where i.id = :id) as dispatched_at
""")


def history(tx: Connection, item_id: int) -> History:
    """What happened to the item with this id. Raises UnknownItem."""
    item = items.get(tx, item_id)
    moment = tx.execute(MOMENT, {"id": item_id}).one()
    rows: list[Any] = list(reversed(tx.execute(ATTEMPTS, {"id": item_id, "limit": LAST}).all()))
    if item.state is State.RUNNING:
        rows += [row for row in tx.execute(RUNNING, {"id": item_id}) if row.started_at is not None]
    events = [EventView(**row._mapping) for row in reversed(tx.execute(EVENTS, {"id": item_id, "limit": LAST}).all())]
    return History(item, moment.now, moment.dispatched_at, [_attempt(row) for row in rows], events)


def _attempt(row: Any) -> AttemptView:
    return AttemptView(
        number=row.number,
        started_at=row.started_at,
        ended_at=row.ended_at,
        outcome=Outcome(row.outcome) if row.outcome else None,
        counts=row.counts,
        reason=row.reason,
        error=row.error,
        session=row.session_id,
        worker=row.worker,
        host=row.host,
        pid=row.pid,
        output=None if row.head is None else Output(row.head, row.tail, row.left_out),
    )
