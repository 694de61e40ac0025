"""Read model of one item: what happened to it, try by try, what it printed, and who did what to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from ordering import items
from ordering.model import Item, Json, Outcome, State, StepKind

LAST = 200  # attempts, steps and events that are shown, the latest ones
RESULT_SHOWN = 500  # characters of a step's result: an item may have remembered a thousand of a million bytes


@dataclass(frozen=True)
class Output:
    """What an attempt printed: its beginning and its end, and how many bytes between them were left out."""

    head: str
    tail: str
    left_out: int


@dataclass(frozen=True)
class OutputView:
    """What an attempt of an item has printed so far. `running`: it may print more. `attempt` is None where nothing was printed."""

    item: int
    state: State
    attempt: int | None
    running: bool
    head: str
    tail: str
    left_out: int
    updated_at: datetime | None


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
class StepView:
    """A step of the body, or a sleep, which is done when it is over. `wake_at` is when a sleep ends by itself.

    `result` is the beginning of its JSON text; `error` tells its last failure, `failures` how often it failed. `attempt` is the one
    that ended it, or tried last.
    """

    number: int
    name: str
    kind: StepKind
    done: bool
    result: str | None
    failures: int
    error: str | None
    attempt: int
    started_at: datetime
    ended_at: datetime | None
    wake_at: datetime | None


@dataclass(frozen=True)
class EventView:
    """One line of the trail."""

    id: int
    at: datetime
    actor: str
    action: str
    before: Json
    after: Json
    reason: str


@dataclass(frozen=True)
class History:
    """An item with its latest LAST attempts, steps and events, oldest first; `now` is the database's clock."""

    item: Item
    now: datetime
    dispatched_at: datetime | None
    attempts: Sequence[AttemptView]
    steps: Sequence[StepView]
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
# An item whose last step is a sleep that is not over yet, and that is put off, sleeps.
STEPS = text("""
    select s.number, s.name, s.kind, s.done and not asleep.yes as done, left(s.result::text, :shown) as result, s.failures, s.error,
        s.attempt, s.started_at, case when not asleep.yes then s.ended_at end as ended_at, s.wake_at
    from relevo.step s cross join lateral (
        select s.kind = 'sleep' and s.wake_at > now() and :postponed and not exists (
            select from relevo.step l where l.item_id = s.item_id and l.number > s.number) as yes
    ) asleep
    where s.item_id = :id order by s.number desc limit :limit
""")
EVENTS = text("select id, at, actor, action, before, after, reason from relevo.event where item_id = :id order by id desc limit :limit")
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
    postponed = item.state is State.POSTPONED
    found = tx.execute(STEPS, {"id": item_id, "limit": LAST, "shown": RESULT_SHOWN, "postponed": postponed}).all()
    steps = [StepView(**{**row._mapping, "kind": StepKind(row.kind)}) for row in reversed(found)]
    return History(item, moment.now, moment.dispatched_at, [_attempt(row) for row in rows], steps, events)


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


OUTPUT = text("""
    select attempt, head, tail, left_out, updated_at from relevo.output
    where item_id = :id and (cast(:attempt as integer) is null or attempt = :attempt) order by attempt desc limit 1
""")


def output(tx: Connection, item_id: int, attempt: int | None = None) -> OutputView:
    """What the item's latest attempt that printed has printed, or its try number `attempt`. Raises UnknownItem."""
    item = items.get(tx, item_id)
    found = tx.execute(OUTPUT, {"id": item_id, "attempt": attempt}).one_or_none()
    if found is None:
        return OutputView(item.id, item.state, None, item.state is State.RUNNING, "", "", 0, None)
    running = item.state is State.RUNNING and found.attempt > item.attempts
    return OutputView(item.id, item.state, running=running, **found._mapping)
