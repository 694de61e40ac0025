"""A session: one pool process's life, proved by a Postgres session-level advisory lock, not by a clock (rule 8)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, text

from ordering import attempt, audit, plans

LOCK_CLASS = 0x72656C6F  # 'relo': the first half of every session's lock


@dataclass(frozen=True)
class Process:
    """Which process stands behind a session. `pid_started` is in clock ticks since boot, as in /proc/PID/stat."""

    worker: str
    host: str
    boot_id: str
    pid_namespace: int
    pid: int
    pid_started: int


@dataclass(frozen=True)
class Session:
    """An open session as recorded."""

    id: int
    process: Process
    opened_at: datetime
    lost_at: datetime | None


INSERT = text("""
    insert into relevo.session (worker, host, boot_id, pid_namespace, pid, pid_started)
    values (:worker, :host, :boot_id, :pid_namespace, :pid, :pid_started) returning id
""")
LOCK = text(f"select pg_advisory_lock({LOCK_CLASS}, :id)")


def open_(tx: Connection, process: Process) -> int:
    """Record a new session and take its lock on this connection, which must live as long as the process; the session's id."""
    session_id: int = tx.execute(INSERT, vars(process)).scalar_one()
    tx.execute(LOCK, {"id": session_id})
    return session_id


REOPEN = text("update relevo.session set lost_at = null, closed_at = null where id = :id returning id")
INTERRUPTED = text("""
    select d.id, d.plan_id, i.id as item_id from relevo.dispatch d join relevo.item i on i.dispatch_id = d.id
    where d.session_id = :id and d.ended_at is null and i.state = 'interrupted' order by d.plan_id
""")
STILL_MINE = text("""
    select i.id from relevo.dispatch d join relevo.item i on i.dispatch_id = d.id
    where d.session_id = :id and d.ended_at is null and i.state = 'dispatched'
""")


def retake(tx: Connection, session_id: int) -> set[int] | None:
    """Take the lock of this living process again on a new connection and put what is still unresolved back to running.

    Waits for the lock (the old backend may linger a moment; bounded by lock_timeout). Returns the items that are still this
    session's: any other has been decided meanwhile, and its body must stop or not begin. None if the session is not there any more:
    closed for so long that it was pruned.
    """
    tx.execute(LOCK, {"id": session_id})
    if tx.execute(REOPEN, {"id": session_id}).first() is None:
        return None
    for row in tx.execute(INTERRUPTED, {"id": session_id}).all():
        plans.lock(tx, row.plan_id)
        # Many dead letters at once are decided without the plan's lock.
        tx.execute(attempt.LOCK_DISPATCH, {"dispatch_id": row.id})
        if attempt.restore(tx, row.item_id, row.id):
            audit.record(
                tx,
                actor="relevo",
                action="retake",
                plan_id=row.plan_id,
                item_id=row.item_id,
                after={"session": session_id},
                reason="the process lives; only its connection was lost",
            )
    return set(tx.execute(STILL_MINE, {"id": session_id}).scalars())


KNOWN = "select id, worker, host, boot_id, pid_namespace, pid, pid_started, opened_at, lost_at from relevo.session"
OPEN = f"{KNOWN} where closed_at is null"
# One look at the locks a second, however many sessions there are; what stands here unlocked is then tried one by one.
UNLOCKED = text(f"""
    {OPEN} and not exists (
        select from pg_locks l where l.locktype = 'advisory' and l.classid = {LOCK_CLASS} and l.objid = session.id and l.objsubid = 2
            and l.granted and l.database = (select oid from pg_database where datname = current_database()))
    order by id
""")


def unlocked(tx: Connection) -> list[Session]:
    """Every session not closed yet whose lock nobody holds at this moment, oldest first."""
    return [_session(row) for row in tx.execute(UNLOCKED)]


LAST_OF = text(f"""
    {KNOWN} where worker = :worker and boot_id = :boot_id and pid_namespace = :pid_namespace and pid = :pid order by id desc limit 1
""")


def last_of(tx: Connection, worker: Process, pid: int) -> Session | None:
    """The latest session of the pool process with this pid of the `worker`, closed or not; None if it never had one."""
    row = tx.execute(LAST_OF, {**vars(worker), "pid": pid}).one_or_none()
    return None if row is None else _session(row)


def _session(row: Row[tuple[object, ...]]) -> Session:
    values: dict[str, Any] = dict(row._mapping)
    opened_at, lost_at, session_id = values.pop("opened_at"), values.pop("lost_at"), values.pop("id")
    return Session(session_id, Process(**values), opened_at, lost_at)


BACKEND = text("select pg_backend_pid()")


def is_pooled(first: Connection, second: Connection) -> bool:
    """Whether two open connections share one server process, as they do behind a transaction pooler.

    `first` must be idle between transactions; `second` is put into one here and stays in it.
    """
    mine = first.execute(BACKEND).scalar_one()
    first.rollback()
    return bool(second.execute(BACKEND).scalar_one() == mine)
