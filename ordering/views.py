"""Read models of plans for people: what stands where, by the database's clock. Nothing here locks or writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, text

from ordering.errors import Invalid, UnknownPlan
from ordering.items import STATE
from ordering.model import UNRESOLVED, OnFailure, OnInterrupt, State
from ordering.session import LOCK_CLASS

PAGE_LIMIT = 10_000  # rows of one page at the most
TEXT_LIMIT = 500  # characters of a title, an error or the arguments in a list; `history` has them whole


class Status(StrEnum):
    """What a plan is doing. `halted`: a failure or an interruption stands at its head and waits for a person."""

    NEW = "new"
    RUNNING = "running"
    HALTED = "halted"
    PAUSED = "paused"
    DRAINED = "drained"


@dataclass(frozen=True)
class RunView:
    """The latest run of a plan; `ended_as` is drained or paused, or None while it is open."""

    id: int
    on_failure: OnFailure
    started_at: datetime
    started_by: str
    ended_at: datetime | None
    ended_as: str | None


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


@dataclass(frozen=True)
class PlanView:
    """A plan with its latest run and its head.

    `counts` has every state: the unsettled ones exactly as they are, the settled ones since the latest run began (a plan's
    whole past may be ten million items). Counting a million waiting items takes about 100 ms.
    """

    id: int
    name: str
    title: str
    concurrency: int
    on_failure: OnFailure
    on_interrupt: OnInterrupt | None
    max_attempts: int | None
    autostart: bool
    status: Status
    run: RunView | None
    counts: Mapping[State, int]
    head: ItemLine | None

    @property
    def unresolved(self) -> int:
        """How many items nobody has decided yet."""
        return sum(self.counts[state] for state in UNRESOLVED)


PLANS = text("""
    select p.id, p.name, p.title, p.concurrency, p.on_failure, p.on_interrupt, p.max_attempts, p.autostart,
        r.id as run_id, r.on_failure as run_on_failure, r.started_at, r.started_by, r.ended_at, r.ended_as,
        (select count(*) from relevo.item i where i.plan_id = p.id and i.state = 'waiting') as waiting,
        (select count(*) from relevo.item i where i.plan_id = p.id and i.state = 'postponed') as postponed,
        (select jsonb_object_agg(state, count) from (
            select i.state, count(*) from relevo.item i
            where i.plan_id = p.id and i.state in ('failed', 'interrupted') group by i.state) x) as unresolved,
        (select jsonb_object_agg(state, count) from (
            select case when d.claimed_at is null then 'dispatched' else 'running' end as state, count(*)
            from relevo.dispatch d join relevo.item i on i.dispatch_id = d.id and i.settled_at is null
            where d.plan_id = p.id and d.ended_at is null and i.state = 'dispatched' group by 1) x) as out,
        (select jsonb_object_agg(state, count) from (
            select i.state, count(*) from relevo.item i
            where i.plan_id = p.id and i.settled_at is not null
                and i.settled_at >= coalesce(r.started_at, '-infinity') group by i.state) x) as settled
    from relevo.plan p left join lateral (
        select * from relevo.run where plan_id = p.id order by id desc limit 1) r on true
    where :name is null or p.name = :name order by p.name
""")
LINE = f"""
    i.id, p.name as plan, i.position, {STATE} as state, i.at_head, i.task,
    left(case when i.kwargs = '{{}}' then i.args::text else i.kwargs::text end, {TEXT_LIMIT}) as arguments,
    left(i.title, {TEXT_LIMIT}) as title, i.kind, i.entry, i.repairs, i.not_before, i.attempts, i.tries,
    left(i.error, {TEXT_LIMIT}) as error, d.session_id as session, i.state = 'interrupted' and d.ended_at is null as pending,
    coalesce(i.settled_at, case i.state
        when 'dispatched' then coalesce(d.claimed_at, d.created_at)
        when 'failed' then (select max(ended_at) from relevo.attempt where item_id = i.id)
        when 'interrupted' then (select max(ended_at) from relevo.attempt where item_id = i.id)
    end, i.created_at) as since
    from relevo.item i join relevo.plan p on p.id = i.plan_id left join relevo.dispatch d on d.id = i.dispatch_id
"""
HEADS = text(f"select {LINE} where i.at_head and i.plan_id = any(:plans)")


def plans(tx: Connection) -> list[PlanView]:
    """Every plan, by name."""
    return _plans(tx, None)


def plan(tx: Connection, name: str) -> PlanView:
    """The plan of this name. Raises UnknownPlan."""
    found = _plans(tx, name)
    if not found:
        raise UnknownPlan(name)
    return found[0]


def _plans(tx: Connection, name: str | None) -> list[PlanView]:
    rows = tx.execute(PLANS, {"name": name}).all()
    lines = tx.execute(HEADS, {"plans": [row.id for row in rows]}).all()
    heads = {line.plan: line for line in map(_line, lines)}
    return [_plan(row, heads.get(row.name)) for row in rows]


def _plan(row: Row[Any], head: ItemLine | None) -> PlanView:
    run = None
    if row.run_id is not None:
        run = RunView(row.run_id, OnFailure(row.run_on_failure), row.started_at, row.started_by, row.ended_at, row.ended_as)
    counted = {"waiting": row.waiting, "postponed": row.postponed, **(row.unresolved or {}), **(row.out or {}), **(row.settled or {})}
    return PlanView(
        id=row.id,
        name=row.name,
        title=row.title,
        concurrency=row.concurrency,
        on_failure=OnFailure(row.on_failure),
        on_interrupt=OnInterrupt(row.on_interrupt) if row.on_interrupt else None,
        max_attempts=row.max_attempts,
        autostart=row.autostart,
        status=_status(run, head),
        run=run,
        counts={state: counted.get(state, 0) for state in State},
        head=head,
    )


def _status(run: RunView | None, head: ItemLine | None) -> Status:
    if run is None:
        return Status.NEW
    if run.ended_as is not None:
        return Status(run.ended_as)
    return Status.HALTED if head is not None and head.state in UNRESOLVED else Status.RUNNING


def _line(row: Row[Any]) -> ItemLine:
    return ItemLine(**{**row._mapping, "state": State(row.state)})


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


def line(tx: Connection, plan_id: int, *, limit: int, after: Cursor | None = None) -> Page:
    """Up to `limit` items of the line (what waits) in their order, behind `after` if that is given. Raises Invalid."""
    if not 0 <= limit <= PAGE_LIMIT:
        raise Invalid("limit", f"{limit} is out of range; use 0 to {PAGE_LIMIT}.")
    begin = after or BEFORE_ALL
    rows = tx.execute(PAGE, {"plan_id": plan_id, "position": begin.position, "id": begin.id, "limit": limit + 1}).all()
    found = [_line(row) for row in rows[:limit]]
    return Page(found, Cursor(found[-1].position, found[-1].id) if found and len(rows) > limit else None)


UNDECIDED = text(f"select {LINE} where i.plan_id = :plan_id and i.state in ('failed', 'interrupted') order by i.position, i.id limit :limit")
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
    return _lines(tx, UNDECIDED, plan_id, limit)


def postponed(tx: Connection, plan_id: int, *, limit: int = PAGE_LIMIT) -> list[ItemLine]:
    """Postponed items, the next to come back first."""
    return _lines(tx, ASLEEP, plan_id, limit)


def out(tx: Connection, plan_id: int, *, limit: int = PAGE_LIMIT) -> list[ItemLine]:
    """What is dispatched or running, in its order."""
    return _lines(tx, OUT, plan_id, limit)


def settled(tx: Connection, plan_id: int, *, limit: int) -> list[ItemLine]:
    """What was settled last, the latest first."""
    return _lines(tx, ENDED, plan_id, limit)


def _lines(tx: Connection, statement: Any, plan_id: int, limit: int) -> list[ItemLine]:
    return [_line(row) for row in tx.execute(statement, {"plan_id": plan_id, "limit": limit})]


LIVE = text(f"""
    select count(distinct s.id) from relevo.session s join pg_locks l on l.locktype = 'advisory' and l.granted
        and l.classid = {LOCK_CLASS} and l.objid = s.id and l.objsubid = 2
        and l.database = (select oid from pg_database where datname = current_database())
    where s.closed_at is null
""")


def live_sessions(tx: Connection) -> int:
    """How many pool processes live now: those whose session lock is held, whatever their row says."""
    found: int = tx.execute(LIVE).scalar_one()
    return found
