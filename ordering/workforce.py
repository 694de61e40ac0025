"""Read model of who works: pool processes proved alive by their locks, what each runs, and what those that went away left behind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from ordering.lines import TEXT_LIMIT
from ordering.model import State
from ordering.session import LOCK_CLASS

MOST = 500  # sessions, and items of the lost ones, that are shown
ITEMS_SHOWN = 5  # of a batch


@dataclass(frozen=True)
class Work:
    """An item that a process runs, since when it was claimed; or left behind at that time, with what it is by now. Titles are cut."""

    id: int
    plan: str
    title: str
    task: str
    state: State
    since: datetime


@dataclass(frozen=True)
class Worker:
    """A pool process that lives: its session's lock is held. `runs`: how many items; `items`: the first of them."""

    session: int
    worker: str
    host: str
    pid: int
    since: datetime
    runs: int
    items: Sequence[Work]


@dataclass(frozen=True)
class Lost:
    """A pool process that went away within the last day and left items behind; `reason`: process lost, or shutdown."""

    session: int
    worker: str
    host: str
    pid: int
    since: datetime
    lost_at: datetime
    reason: str
    items: Sequence[Work]


@dataclass(frozen=True)
class Offered:
    """A task that a worker has offered, and the queue that it comes through. `plan`: where `.delay()` adds it."""

    name: str
    queue: str
    plan: str | None
    batch: bool
    since: datetime


@dataclass(frozen=True)
class Workforce:
    """Who works, longest first; who went away, latest first; what was offered, by name. `now` is the database's clock."""

    now: datetime
    workers: Sequence[Worker]
    lost: Sequence[Lost]
    tasks: Sequence[Offered]


HELD = f"""
    select s.* from relevo.session s where s.closed_at is null and exists (
        select from pg_locks l where l.locktype = 'advisory' and l.granted
            and l.classid = {LOCK_CLASS} and l.objid = s.id and l.objsubid = 2
            and l.database = (select oid from pg_database where datname = current_database()))
"""
ALIVE = text(f"select id, worker, host, pid, opened_at from ({HELD}) held order by opened_at, id limit {MOST}")
WORK = "i.id, p.name as plan, left(coalesce(nullif(i.title, ''), i.task), :cut) as title, i.task"
RUNNING = text(f"""
    select * from (
        select d.session_id, {WORK}, 'running' as state, d.claimed_at as since, count(*) over of_session as runs,
            row_number() over (of_session order by d.claimed_at, i.position, i.id) as number
        from relevo.dispatch d join relevo.item i on i.dispatch_id = d.id and i.state = 'dispatched' join relevo.plan p on p.id = i.plan_id
        where d.session_id = any(:sessions) and d.claimed_at is not null and d.ended_at is null
        window of_session as (partition by d.session_id)
    ) numbered where number <= {ITEMS_SHOWN} order by session_id, number
""")
# Going on from the interrupted attempts: most sessions end in peace, and those that did not are few. A process that was stopped because
# a person cancelled what it ran is not lost.
LEFT = text(f"""
    select a.session_id, a.reason, a.ended_at, s.worker, s.host, s.pid, s.opened_at, coalesce(s.lost_at, a.ended_at) as lost_at,
        {WORK}, case when i.state = 'dispatched' and d.claimed_at is not null then 'running' else i.state end as state, a.ended_at as since
    from (
        select * from relevo.attempt where outcome = 'interrupted' and ended_at > now() - interval '1 day' and reason <> 'cancelled'
        order by ended_at desc limit {MOST}
    ) a
    join relevo.session s on s.id = a.session_id join relevo.item i on i.id = a.item_id
    join relevo.plan p on p.id = i.plan_id left join relevo.dispatch d on d.id = i.dispatch_id
    order by a.ended_at desc, a.session_id, i.position
""")
TASKS = text("select name, queue, plan, batch, registered_at as since from relevo.task order by name")
NOW = text("select now()")


def workforce(tx: Connection) -> Workforce:
    """Who works at this moment, and what became of those that do not any more."""
    alive = tx.execute(ALIVE).all()
    running = defaultdict[int, list[Any]](list)
    for row in tx.execute(RUNNING, {"sessions": [row.id for row in alive], "cut": TEXT_LIMIT}):
        running[row.session_id].append(row)
    workers = [_worker(row, running[row.id]) for row in alive]
    left = defaultdict[int, list[Any]](list)
    for row in tx.execute(LEFT, {"cut": TEXT_LIMIT}):
        left[row.session_id].append(row)
    lost = [_lost(rows) for rows in left.values()]
    offered = [Offered(**row._mapping) for row in tx.execute(TASKS)]
    return Workforce(tx.execute(NOW).scalar_one(), workers, lost, offered)


def _worker(row: Any, running: Sequence[Any]) -> Worker:
    runs = running[0].runs if running else 0
    return Worker(row.id, row.worker, row.host, row.pid, row.opened_at, runs, [_work(each) for each in running])


def _lost(rows: Sequence[Any]) -> Lost:
    row = rows[0]
    items = [_work(each) for each in rows]
    return Lost(row.session_id, row.worker, row.host, row.pid, row.opened_at, row.lost_at, row.reason, items)


def _work(row: Any) -> Work:
    return Work(row.id, row.plan, row.title, row.task, State(row.state), row.since)
