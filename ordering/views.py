"""Read models of plans for people: what stands where, by the database's clock. Nothing here locks or writes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, text

from ordering import lines
from ordering.errors import UnknownPlan
from ordering.model import UNRESOLVED, OnFailure, OnInterrupt, State
from ordering.rate import shown
from ordering.session import LOCK_CLASS


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
class PlanView:
    """A plan with its latest run and its head.

    `counts` has every state: the unsettled ones exactly as they are, the settled ones since the latest run began (a plan's
    whole past may be ten million items), of a stream the latest LATEST of them. Counting a million waiting items takes about 100 ms.
    """

    id: int
    name: str
    title: str
    concurrency: int
    on_failure: OnFailure
    on_interrupt: OnInterrupt | None
    max_attempts: int | None
    autostart: bool
    keep: timedelta
    rate: str | None
    status: Status
    run: RunView | None
    counts: Mapping[State, int]
    head: lines.ItemLine | None

    @property
    def unresolved(self) -> int:
        """How many items nobody has decided yet."""
        return sum(self.counts[state] for state in UNRESOLVED)


LATEST = 10_000  # settled items of a stream that are counted: its run never ends
PLANS = text(f"""
    select p.id, p.name, p.title, p.concurrency, p.on_failure, p.on_interrupt, p.max_attempts, p.autostart, p.keep, p.rate,
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
            select state, count(*) from (
                select i.state from relevo.item i
                where i.plan_id = p.id and i.settled_at is not null and i.settled_at >= coalesce(r.started_at, '-infinity')
                order by i.settled_at desc limit case when p.concurrency > 1 then {LATEST} end) latest group by state) x) as settled
    from relevo.plan p left join lateral (
        select * from relevo.run where plan_id = p.id order by id desc limit 1) r on true
    where cast(:names as text[]) is null or p.name = any(:names) order by p.name
""")
HEADS = text(f"select {lines.LINE} where i.at_head and i.plan_id = any(:plans)")


def plans(tx: Connection) -> list[PlanView]:
    """Every plan, by name."""
    return _plans(tx, None)


NAMES = text("""
    select name from relevo.plan where name > :after
        and (cast(:text as text) is null or strpos(lower(name), lower(:text)) > 0 or strpos(lower(title), lower(:text)) > 0)
    order by name limit :limit
""")


def page(tx: Connection, *, limit: int, after: str = "", text: str | None = None) -> tuple[list[PlanView], str | None]:
    """Up to `limit` plans by name, behind the name `after`, with `text` in name or title; where the next page begins."""
    names = list(tx.execute(NAMES, {"after": after, "text": text, "limit": limit + 1}).scalars())
    return _plans(tx, names[:limit]), names[limit - 1] if len(names) > limit else None


OFFERED = text("select name from relevo.plan where not :streams or concurrency > 1 order by name limit :limit")


def names(tx: Connection, *, limit: int, streams: bool = False) -> list[str]:
    """The first `limit` names of plans, or of streams only."""
    return list(tx.execute(OFFERED, {"streams": streams, "limit": limit}).scalars())


def plan(tx: Connection, name: str) -> PlanView:
    """The plan of this name. Raises UnknownPlan."""
    found = _plans(tx, [name])
    if not found:
        raise UnknownPlan(name)
    return found[0]


def _plans(tx: Connection, names: list[str] | None) -> list[PlanView]:
    rows = tx.execute(PLANS, {"names": names}).all()
    heads = {head.plan: head for head in map(lines.line, tx.execute(HEADS, {"plans": [row.id for row in rows]}))}
    return [_plan(row, heads.get(row.name)) for row in rows]


def _plan(row: Row[Any], head: lines.ItemLine | None) -> PlanView:
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
        keep=row.keep,
        rate=None if row.rate is None else shown(row.rate),
        status=status(run, head),
        run=run,
        counts={state: counted.get(state, 0) for state in State},
        head=head,
    )


def status(run: RunView | None, head: lines.ItemLine | None) -> Status:
    """What a plan with this latest run and this head is doing."""
    if run is None:
        return Status.NEW
    if run.ended_as is not None:
        return Status(run.ended_as)
    return Status.HALTED if head is not None and head.state in UNRESOLVED else Status.RUNNING


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
