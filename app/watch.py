"""The watch: one connection to Postgres that hears of new events and looks once a second for what machines did, while anybody listens."""

from __future__ import annotations

import logging
import os
import secrets
import selectors
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Engine

from app.listeners import Listener, Place, message
from ordering import changes, db, trail
from ordering.horizon import PATIENCE, Horizon

logger = logging.getLogger(__name__)
LOOK_SECONDS = 1.0  # between two looks for what machines did
BURST_SECONDS = 0.05  # between two looks at the trail: what comes in a burst is read at once
SIGNALS_SECONDS = 5.0
MOST = 500  # events of one look or of one return; beyond that a listener is told to fetch everything anew
PLANS = 1_000  # that are named in one message
COST = 10  # a look that takes long is followed by a pause of so many times its length


class Audience(Protocol):
    """Who is told. `tell` reaches all listeners that have begun, `begin` one that has not, `away` and `back` everybody once."""

    def tell(self, messages: Sequence[bytes]) -> None: ...
    def begin(self, listener: Listener, messages: Sequence[bytes]) -> None: ...
    def away(self) -> None: ...
    def back(self) -> None: ...
    def joining(self) -> list[Listener]: ...
    def watched(self, watch: Watch) -> bool: ...


class Watch:
    """Runs in a thread of its own. `place` is the place of somebody who knows everything up to now, None before the first look."""

    def __init__(self, engine: Engine, audience: Audience, wake: int) -> None:
        """`wake`: a descriptor that becomes readable when somebody joins or the watch is to end."""
        self._engine, self._audience, self._wake = engine, audience, wake
        self._name = secrets.token_hex(4)
        self._horizon: Horizon | None = None
        self._seals: Mapping[str, str] = {}
        self._changed: dict[str, int] = {}  # by plan, the look that saw it change
        self._workers = ""
        self._look = 0
        self._late: tuple[int, float] | None = None  # a transaction's number, and when it was the next
        self._signals_due, self._signals_told = False, 0.0
        self._away = False
        self.place: Place | None = None
        self.busy: tuple[float, Connection] | None = None  # since when a statement is under way, and on what

    def run(self) -> None:
        """Watch until nobody does any more."""
        while self._audience.watched(self):
            try:
                with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                    self._begin(connection)
                    self._go_on(connection)
            except Exception as error:  # of any kind: without the watch no page is told of anything any more
                self.busy = None
                if not (isinstance(error, (psycopg.Error, OSError)) or db.may_pass(error)):
                    logger.exception("A look for changes failed; the next one is in a second.")
                self._tell_away(error)
                self._pause(LOOK_SECONDS)

    def _tell_away(self, error: Exception) -> None:
        if not self._away:
            logger.warning("What happens cannot be told until Postgres is read again: %s", db.said(error))
        self._away, self.place = True, None
        self._audience.away()  # each time, for those who came meanwhile

    def _begin(self, connection: Connection) -> None:
        raw: Any = connection.connection.driver_connection
        with self._bounded(connection):
            raw.execute(sql.SQL("listen {}").format(sql.Identifier(changes.CHANNEL)))
            fresh = changes.begun(connection)
        if self._horizon is None or max(fresh.told, default=fresh.low) < self._horizon.low:  # another database than before
            if self._horizon is not None:
                self._audience.tell([message("reset", {})])
            self._horizon = fresh
        if self._away:
            logger.info("What happens is told again.")
            self._audience.back()
            self._away = False

    def _go_on(self, connection: Connection) -> None:
        raw: Any = connection.connection.driver_connection
        due = 0.0
        with selectors.DefaultSelector() as selector:
            selector.register(raw.fileno(), selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while self._audience.watched(self):
                began = time.monotonic()
                with self._bounded(connection):
                    self._look_at_trail(connection)
                    if began >= due:
                        self._look_at_plans(connection)
                        due = began + max(LOOK_SECONDS, COST * (time.monotonic() - began))
                    for listener in self._audience.joining():
                        self._let_in(connection, listener)
                    # What came meanwhile may be younger than what was read.
                    heard = any(True for _ in raw.notifies(timeout=0))
                if not heard:
                    self._wait(selector, raw, due)
                time.sleep(BURST_SECONDS)

    def _wait(self, selector: selectors.BaseSelector, raw: Any, due: float) -> None:
        while (left := due - time.monotonic()) > 0:
            ready = [key.fd for key, _ in selector.select(left)]
            if self._wake in ready:
                self._clear()
                return
            if ready and any(True for _ in raw.notifies(timeout=0)):
                return

    def _look_at_trail(self, connection: Connection) -> None:
        assert self._horizon is not None
        found = changes.new(connection, self._horizon.low, self._horizon.told, MOST + 1)
        if len(found.ids) > MOST:
            # Some of those that are passed over may come late: once more when they have come.
            self._horizon, self._late = changes.begun(connection), (changes.next_xid(connection), time.monotonic())
            self._reset()
            return
        if self._late is not None and found.oldest > self._late[0] and time.monotonic() - self._late[1] >= PATIENCE:
            self._late = None
            self._reset()
        self._horizon.take(found.ids, found.oldest, time.monotonic())
        if self._horizon.needs_mark:
            self._horizon.mark(changes.next_xid(connection), time.monotonic())
        if found.ids:
            self._audience.tell(_trail(trail.of_ids(connection, found.ids), self._here()))
            self._signals_due = True
        self.place = self._here()

    def _reset(self) -> None:
        self._audience.tell([message("reset", {}, self._here())])
        self._signals_due = True

    def _look_at_plans(self, connection: Connection) -> None:
        self._look += 1
        seals, workers = changes.seals(connection), changes.workers(connection)
        if self._look > 1:
            changed = [name for name, seal in seals.items() if self._seals.get(name) != seal]
            self._changed = {name: look for name, look in self._changed.items() if name in seals} | dict.fromkeys(changed, self._look)
            if changed:
                self._audience.tell([self._told(changed)])
                self._signals_due = True
            if workers != self._workers:
                self._signals_due, self._signals_told = True, 0.0
        self._seals, self._workers = seals, workers
        self.place = self._here()
        now = time.monotonic()
        if now - self._signals_told >= (SIGNALS_SECONDS if self._signals_due else 6 * SIGNALS_SECONDS):
            self._audience.tell([message("signals", {})])
            self._signals_due, self._signals_told = False, now

    def _here(self) -> Place:
        assert self._horizon is not None
        return Place(self._horizon.low, self._name, self._look)

    def _told(self, plans: Sequence[str]) -> bytes:
        return message("changed", {"plans": plans}, self._here()) if len(plans) <= PLANS else message("reset", {}, self._here())

    def _let_in(self, connection: Connection, listener: Listener) -> None:
        """Tell one listener what it has missed since its place; from now on it hears what all do."""
        assert self._horizon is not None
        since, here = listener.place, self._here()
        first = [f"retry: 2000\nid: {here}\n\n".encode()]  # no message: the client keeps the place
        if since is None:
            self._audience.begin(listener, [*first, self._told(list(self._seals))])
            return
        ids = changes.new(connection, since.event, (), MOST + 1).ids
        if len(ids) > MOST or since.event > max([self._horizon.low, *self._horizon.told, *ids]):
            self._audience.begin(listener, [*first, message("reset", {}, here)])
            return
        known = since.look if since.watch == self._name else -1
        plans = [name for name in self._seals if self._changed.get(name, 0) > known] if known >= 0 else list(self._seals)
        missed = _trail(trail.of_ids(connection, ids), here)
        self._audience.begin(listener, [*missed, *([self._told(plans)] if plans else []), *first])

    def _bounded(self, connection: Connection) -> _Busy:
        return _Busy(self, connection)

    def _pause(self, seconds: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._wake, selectors.EVENT_READ)
            if selector.select(seconds):
                self._clear()
                time.sleep(BURST_SECONDS)

    def _clear(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)


def _trail(events: Sequence[trail.Event], place: Place) -> list[bytes]:
    """Messages of events, oldest first. Only the last has the place: a client that is cut off in between still lacks the rest."""
    return [message("trail", each, place if each is events[0] else None) for each in reversed(events)]


class _Busy:
    """While it is entered, whoever guards the watch may cut its connection when that takes too long."""

    def __init__(self, watch: Watch, connection: Connection) -> None:
        self._watch, self._connection = watch, connection

    def __enter__(self) -> None:
        self._watch.busy = time.monotonic(), self._connection

    def __exit__(self, *_: object) -> None:
        self._watch.busy = None
