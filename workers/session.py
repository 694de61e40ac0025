"""The session of one pool process (rule 8): a connection of its own, its lock, the watch over it, and the way back.

The main thread claims and finishes on this connection; a watching thread sees its end at once, since a broken connection
shows on the socket, and takes the lock again on a new one while the body goes on.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from ordering import db, head
from ordering import session as sessions
from ordering.model import Claimed, OnInterrupt
from ordering.session import Process
from workers import forks, slate

T = TypeVar("T")
logger = logging.getLogger(__name__)

BROKEN = select.POLLRDHUP | select.POLLHUP | select.POLLERR
# A requeue body must be gone within 4 s of the last sign of its session, before anybody may requeue it (5 s). TCP itself takes
# up to 3 s to give up on a silent peer, and a closed connection shows at once.
PATIENCE_AFTER_CLOSE = 3.5
PATIENCE_AFTER_SILENCE = 0.8
RETRY_PAUSE = 0.2


class PoolSession:
    """The session of this process. One body runs at a time, in the main thread."""

    def __init__(self, url: str, process: Process) -> None:
        self._engine: Engine = forks.guard(db.engine(url, name=f"relevo session {process.pid}", pooled=False))
        self._process = process
        self._lock = threading.RLock()  # whoever uses or replaces the connection holds it
        self._connection: Connection | None = None
        self.id: int | None = None
        self._running: dict[int, Claimed] = {}  # by item: what is without a verdict
        self.decided: set[int] = set()  # items of the running dispatch that somebody decided while this process was cut off
        # What this process published and nobody has noted yet. Noted once a second: by then nearly all of it is claimed, which
        # says the same, and a hand-off need not wait for it. Lost with the process: a second copy goes out and is dropped.
        self.published: list[UUID] = []
        threading.Thread(target=self._watch, name="relevo-session", daemon=True).start()

    def transact(self, verb: Callable[[Connection, int], T]) -> T:
        """Run `verb(tx, session id)` in a transaction on the session's connection, again and again until the database took it.

        The verb must bear a repetition whose first commit came through. There is no giving up: the outcome of a body has
        nowhere else to go, and a stop of the worker ends the wait.
        """
        told = False
        while True:
            try:
                with self._lock:
                    connection = self._connected()
                    assert self.id is not None
                    with connection.begin():
                        return verb(connection, self.id)
            except DBAPIError as error:
                if not db.may_pass(error):
                    raise
                if db.is_disconnect(error):
                    self._drop()
                if not told:
                    logger.warning("Postgres cannot take it now (%s); waiting for it.", db.said(error))
                    told = True
            time.sleep(RETRY_PAUSE)

    def try_transact(self, verb: Callable[[Connection, int], object]) -> bool:
        """As `transact`, once, for what may be lost (output so far); whether it was written."""
        try:
            with self._lock:
                if self._connection is None or self.id is None:
                    return False
                with self._connection.begin():
                    verb(self._connection, self.id)
        except DBAPIError as error:
            if db.is_disconnect(error):
                self._drop()  # or SQLAlchemy would put another in its place, and that one does not hold the session's lock
            return False
        return True

    @contextmanager
    def running(self, runs: Sequence[Claimed]) -> Iterator[None]:
        """The block in which the bodies of one dispatch run: the watch knows what is at stake."""
        self._running, self.decided = {run.item_id: run for run in runs}, set()
        try:
            yield
        finally:
            self._running = {}

    def ended(self, item_id: int) -> None:
        """The item's body is over: a session that is lost now is no reason to stop what else this process does."""
        self._running.pop(item_id, None)

    def is_cut_off(self) -> bool:
        """Whether Postgres is out of this process's reach."""
        return self._connection is None

    def _connected(self) -> Connection:
        if self._connection is None:
            connection = self._engine.connect()
            try:
                with connection.begin():
                    mine = None if self.id is None else sessions.retake(connection, self.id)
                    session_id = sessions.open_(connection, self._process) if self.id is None or mine is None else self.id
            except BaseException:
                connection.invalidate()
                connection.close()
                raise
            self.id = session_id  # not before the commit: a connection that ends there leaves no session
            self._connection = connection
            self._stop_if_decided(mine or set())
        return self._connection

    def _drop(self) -> None:
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.invalidate()
                connection.close()

    def _watch(self) -> None:
        patience = PATIENCE_AFTER_CLOSE
        try:
            while True:
                connection = self._come_back(patience)
                patience = self._wait_for_break(connection)
                with self._lock:
                    if self._connection is connection:
                        self._drop()
        except Exception:
            # No thread to be had, say. Alive, this process would run on where its item may be requeued elsewhere.
            logger.exception("The watch over the session cannot go on; the process ends.")
            slate.end_myself()
            stop_body("nobody watches its session")

    def _wait_for_break(self, connection: Connection) -> float:
        """Return once the connection is broken or replaced: the seconds that a requeue body then has."""
        poll = select.poll()
        with self._lock:
            if self._connection is not connection or connection.invalidated:
                return PATIENCE_AFTER_CLOSE
            raw: Any = connection.connection.driver_connection
            try:
                poll.register(raw.fileno(), BROKEN)
            except psycopg.OperationalError:
                return PATIENCE_AFTER_SILENCE
        # The second's timeout notices a connection that the main thread has replaced meanwhile.
        while self._connection is connection:
            if poll.poll(1000):
                with self._lock:
                    if self._connection is not connection:
                        break
                    return PATIENCE_AFTER_SILENCE if _was_silent(raw) else PATIENCE_AFTER_CLOSE
            self._note_published()
        return PATIENCE_AFTER_CLOSE

    def _note_published(self) -> None:
        taken, self.published = self.published, []
        if taken:
            self.try_transact(lambda tx, _: head.mark_published(tx, taken))

    def _come_back(self, patience: float) -> Connection:
        """Connect, taking the session again if there was one; a requeue body is stopped when that lasts too long."""
        # On a thread of its own: a cut-off host may sit in a name lookup or a connect for longer than the patience.
        out_of_patience = threading.Timer(patience, self._stop_if_requeued)
        out_of_patience.daemon = True
        out_of_patience.start()
        while True:
            try:
                with self._lock:
                    connection = self._connected()
                out_of_patience.cancel()
                return connection
            except DBAPIError as error:
                if not db.is_disconnect(error):
                    logger.warning("The session cannot be taken: %s", db.said(error))
            time.sleep(RETRY_PAUSE)

    def _stop_if_requeued(self) -> None:
        if self._connection is None and any(run.on_interrupt is OnInterrupt.REQUEUE for run in list(self._running.values())):
            slate.end_myself()
            stop_body("its session is lost and its item may be requeued elsewhere")

    def _stop_if_decided(self, mine: set[int]) -> None:
        running = set(self._running)
        self.decided |= running - mine
        if running and not running & mine:
            stop_body("its item has been decided meanwhile")


def _was_silent(raw: Any) -> bool:
    """Whether TCP gave up on the other side, rather than hear its end; also where libpq has let go of the socket before us."""
    try:
        with socket.socket(fileno=os.dup(raw.fileno())) as end:
            return end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
    except psycopg.OperationalError:
        return True


def stop_body(reason: str) -> None:
    """End this process and its group: the pool starts another one. TERM first, so that a body can let go of what it holds."""
    logger.warning("Stopping the body: %s.", reason)
    os.killpg(0, signal.SIGTERM)
    time.sleep(0.3)
    os.killpg(0, signal.SIGKILL)
