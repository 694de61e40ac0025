"""The warden: a thread of the worker's parent process that does what its children cannot do for themselves.

It stops the bodies of cancelled items, reconciles when a child died, records refused messages, bounds a graceful stop, and closes
the gate while Postgres is away.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection as Listener
from psycopg import OperationalError
from sqlalchemy import Connection, Engine, Row, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from ordering import attempt, audit, db, finish, reconcile
from ordering import session as sessions
from ordering.decide import Failed
from ordering.items import STOP_CHANNEL
from ordering.session import Process, Session
from workers import gate, last_resort, process, slate
from workers.listening import listening

logger = logging.getLogger(__name__)

WAKE, STOP = b"w", b"s"  # what the thread is told through its pipe
TICK = 1.0  # seconds between looks when nothing is heard
LONGEST_GRACE = 2 * 86400.0  # seconds; more than any plan's stop_grace may be
GRACE_WITHOUT_DATABASE = 10.0  # seconds that a stop waits for bodies and their outcomes while Postgres is away; a plan's default
KILL_AFTER = 5.0  # seconds between TERM and KILL for a body that is told to stop
# Seconds without a body within its plan's stop_grace, after which what still lives is taken to hang: an idle stop takes 1 s, and a body
# that was cut gets KILL_AFTER.
HANGS_AFTER = 10.0
# The lock of a dead child is free within milliseconds (measured 0-18 ms); the looks after its death come at these seconds.
LOOKS_AFTER_DEATH = (0.0, 0.05, 0.2, 1.0)


class Warden(threading.Thread):
    """One per worker. Every public method may be called from any thread and returns at once."""

    def __init__(self, engine: Engine, me: Process) -> None:
        super().__init__(name="relevo-warden", daemon=True)
        self._engine, self._me = engine, me
        self._jobs: deque[Callable[[], None]] = deque()
        self._reading, self._writing = os.pipe()
        self._looks: list[float] = []
        self._stopping_since: float | None = None
        self._stopping = 0  # how often it was told so
        self._last_resort = False
        self._bodiless_since: float | None = None  # since when a stop has had no body that it waits for
        self._doomed: dict[tuple[int, int], float] = {}
        self._ending = False
        self._lost_at: float | None = None  # since when Postgres has been away

    def child_died(self, pid: int) -> None:
        """A pool process is gone: reconcile now and until its lock is free."""
        if slate.ends_itself(pid):
            self._do(lambda: self._excuse(pid))
        self._do(lambda: self._looks.extend(time.monotonic() + after for after in LOOKS_AFTER_DEATH))

    def refused(self, reason: str, size: int, preview: str, task_id: str | None, task_name: str | None) -> None:
        """Record a message that runs nothing; if it was a dispatch of ours, its item fails with the reason."""
        self._do(lambda: self._record_refusal(reason, size, preview, task_id, task_name))

    def stopping(self) -> None:
        """The worker stops gracefully: bodies may go on for their plan's stop_grace, then they are marked and cut. Twice: cut now.

        Called by a signal handler, in the midst of anything: it only writes a byte, and what it means is done by the thread.
        """
        os.write(self._writing, STOP)

    def end(self) -> None:
        """Finish what is queued, unless Postgres is away, and let the thread end."""
        self._ending = True
        os.write(self._writing, WAKE)
        if self.is_alive():
            self.join(timeout=5)

    def announce_cut(self, dispatch_id: str, reason: str) -> None:
        """Say, before the kill, why a dispatch's process is killed. Blocks for one short transaction; a failure is only logged."""
        try:
            with self._engine.begin() as tx:
                attempt.announce_cut(tx, UUID(dispatch_id), reason)
        except SQLAlchemyError as error:
            logger.warning("A time limit could not be noted before the kill: %s", error)

    def _do(self, job: Callable[[], None]) -> None:
        self._jobs.append(job)
        os.write(self._writing, WAKE)

    def run(self) -> None:
        """Listen and look, until ended; a database that is away is waited for."""
        self._looks.append(time.monotonic())  # reconciling at start-up (rule 10)
        while not self._ended():
            try:
                with listening(self._engine, STOP_CHANNEL) as listener:
                    self._found()
                    while not self._ended():
                        self._once(listener)
            except (OperationalError, SQLAlchemyError) as error:
                if isinstance(error, DBAPIError) and not db.may_pass(error):
                    self._drop_first(error)
                elif not (isinstance(error, DBAPIError) and db.is_locked(error)):
                    self._lost(error)
                    if self._ending:
                        return
                    self._stop_without_database()
                self._hear(TICK)
            except Exception as error:
                self._drop_first(error)
                self._hear(TICK)

    def _drop_first(self, error: Exception) -> None:
        # Dead, it would stop no body and bound no stop; what was at fault is dropped, and the rest goes on.
        logger.error("The warden goes on.", exc_info=error)
        if self._jobs:
            self._jobs.popleft()

    def _ended(self) -> bool:
        return self._ending and not self._jobs

    def _hear(self, seconds: float, *others: int) -> None:
        """Wait until something is written to the pipe or one of the other descriptors; do what a stop needs at once."""
        poll = select.poll()  # select() knows no descriptor from 1024 on, and each slot takes some
        for descriptor in (self._reading, *others):
            poll.register(descriptor, select.POLLIN)
        if self._reading not in [descriptor for descriptor, _ in poll.poll(seconds * 1000)]:
            return
        for _ in range(os.read(self._reading, 65536).count(STOP)):
            self._stopping += 1
            if self._stopping == 1:
                logger.info("Stopping gracefully: running bodies may finish, for their plan's stop_grace at the most.")
                self._stopping_since = time.monotonic()
                gate.turn()  # the loop may wait for seconds, and would take the next message
            elif self._stopping == 2:
                logger.info("Told to stop again: running bodies are cut now.")

    def _lost(self, error: Exception) -> None:
        if self._lost_at is None:
            self._lost_at = time.monotonic()
            gate.database_away(True)
            away = "Postgres is out of reach and is tried again every second; nothing is fetched meanwhile: %s"
            logger.warning(away, db.said(error))

    def _found(self) -> None:
        if self._lost_at is not None:
            logger.info("Postgres is back after %.1f s; messages are fetched again.", time.monotonic() - self._lost_at)
            self._lost_at = None
            gate.database_away(False)

    def _once(self, listener: Listener[Any]) -> None:
        due = min([TICK, *(max(0.0, look - time.monotonic()) for look in self._looks)])
        self._hear(due, listener.fileno())
        for _ in listener.notifies(timeout=0):
            pass  # what it says is looked up below
        while self._jobs:
            self._jobs[0]()  # taken off only when done: a refusal is not lost with a connection
            self._jobs.popleft()
        now = time.monotonic()
        if any(look <= now for look in self._looks):
            self._looks = [look for look in self._looks if look > now]
            reconcile.reconcile(self._engine, process.alive)
        self._kill_doomed(now)
        self._stop_cancelled()
        if self._stopping_since is not None:
            waited = timedelta(seconds=LONGEST_GRACE if self._stopping > 1 else now - self._stopping_since)
            with self._engine.begin() as tx:
                bodies = tx.execute(BODIES, {**self._own(), "waited": waited}).all()
            self._end_what_hangs(now, in_grace=not all(row.overdue for row in bodies))
            self._cut([row for row in bodies if row.overdue])  # last: it fails as long as somebody has locked a plan

    def _stop_without_database(self) -> None:
        # Nobody can be asked for a plan's stop_grace, and nothing can be marked: the lost sessions tell it afterwards.
        now = time.monotonic()
        if self._stopping_since is not None:
            over = self._stopping > 1 or now - self._stopping_since > GRACE_WITHOUT_DATABASE
            if over:
                self._doom_children()
            self._end_what_hangs(now, in_grace=not over)
        self._kill_doomed(now)

    def _end_what_hangs(self, now: float, in_grace: bool) -> None:
        """The last resort: a stop ends, whatever hangs, some seconds after the last body that was still within its plan's stop_grace."""
        if in_grace:
            self._bodiless_since = None
            return
        if self._bodiless_since is None:
            self._bodiless_since = now
        hanging = now - self._bodiless_since
        if hanging > HANGS_AFTER and not self._last_resort:
            self._last_resort = True
            last_resort.end_in(2 * KILL_AFTER)
        if hanging > HANGS_AFTER:
            self._doom_children()

    def _doom_children(self) -> None:
        import psutil  # costly, and needed here only

        for child in psutil.Process().children():
            started = process.started(child.pid)
            if started is not None and (child.pid, started) not in self._doomed:
                logger.warning("Pool process %d does not end by itself and is stopped.", child.pid)
                self._doom(child.pid, started)

    def _stop_cancelled(self) -> None:
        with self._engine.begin() as tx:
            for session in tx.execute(CANCELLED, self._own()).all():
                self._doom(session.pid, session.pid_started)

    def _cut(self, bodies: Sequence[Row[Any]]) -> None:
        for row in bodies:
            me = Process(self._me.worker, self._me.host, self._me.boot_id, self._me.pid_namespace, row.pid, row.pid_started)
            session = Session(row.session_id, me, row.opened_at, None)
            with self._engine.begin() as tx:
                reconcile.interrupt(tx, session, reason="shutdown", counts=False, dispatch_id=row.id)
            logger.warning("Cut the item of dispatch %s; it is marked as interrupted (shutdown).", row.id)
            self._doom(row.pid, row.pid_started)

    def _doom(self, pid: int, pid_started: int) -> None:
        if (pid, pid_started) not in self._doomed and process.started(pid) == pid_started:
            self._doomed[pid, pid_started] = time.monotonic() + KILL_AFTER
            _signal_group(pid, signal.SIGTERM)

    def _kill_doomed(self, now: float) -> None:
        for (pid, pid_started), deadline in list(self._doomed.items()):
            if process.started(pid) != pid_started:
                del self._doomed[pid, pid_started]
            elif now > deadline:
                _signal_group(pid, signal.SIGKILL)

    def _own(self) -> dict[str, object]:
        me = self._me
        return {"worker": me.worker, "boot_id": me.boot_id, "pid_namespace": me.pid_namespace}

    def _excuse(self, pid: int) -> None:
        with self._engine.begin() as tx:
            session = sessions.last_of(tx, self._me, pid)
            if session is not None:
                reconcile.excuse(tx, session)

    def _record_refusal(self, reason: str, size: int, preview: str, task_id: str | None, task_name: str | None) -> None:
        def record(tx: Connection) -> None:
            audit.record(
                tx,
                actor=f"worker {self._me.worker}",
                action="refuse",
                reason=reason,
                after={"size": size, "preview": preview, "dispatch": task_id, "task": task_name},
            )
            if task_id is not None and task_name is not None and _is_uuid(task_id):
                finish.refuse(tx, UUID(task_id), task_name, Failed("UnknownTask", _why(reason, task_name, self._me.worker), final=True))

        with self._engine.begin() as tx:
            record(tx)


CANCELLED = text("""
    select distinct s.pid, s.pid_started from relevo.session s
    join relevo.dispatch d on d.session_id = s.id join relevo.item i on i.dispatch_id = d.id
    where s.worker = :worker and s.boot_id = :boot_id and s.pid_namespace = :pid_namespace and s.closed_at is null
      and d.claimed_at is not null and d.ended_at is null and i.state = 'cancelled'
""")
BODIES = text("""
    select distinct d.id, s.id as session_id, s.pid, s.pid_started, s.opened_at, p.stop_grace < :waited as overdue from relevo.session s
    join relevo.dispatch d on d.session_id = s.id join relevo.plan p on p.id = d.plan_id
    join relevo.item i on i.dispatch_id = d.id
    where s.worker = :worker and s.boot_id = :boot_id and s.pid_namespace = :pid_namespace and s.closed_at is null
      and d.claimed_at is not null and d.ended_at is null and i.state = 'dispatched'
""")


def _why(reason: str, task_name: str, worker: str) -> str:
    return f"unknown task {task_name}: worker {worker} does not have it" if "unknown" in reason else reason


def _is_uuid(value: str) -> bool:
    try:
        UUID(value)
    except ValueError:
        return False
    return True


def _signal_group(pid: int, number: signal.Signals) -> None:
    # Each pool process leads a group of its own; one that died meanwhile has none.
    try:
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
    except ProcessLookupError:
        pass
