"""The listeners of one web process, and the one watch that is there while somebody listens."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress

from sqlalchemy import Engine

from app.api_call import cut
from app.listeners import Listener, Place, message
from app.problem import Refused
from app.watch import Watch
from ordering import db

MOST = 200  # listeners
LINGER = 10.0  # seconds that the watch goes on without any: a page that is left for another one comes back at once
HANGS, GUARD = 2.0, 0.5  # seconds after which a statement of the watch is given up, and between two looks whether it hangs
SESSION = {"statement_timeout": "2500", "lock_timeout": "1000"}


class Live:
    """Lets listeners in and tells them. All but what the watch calls belongs to the event loop's thread."""

    def __init__(self, engine: Engine) -> None:
        url = engine.url.render_as_string(hide_password=False)
        self._engine = db.engine(url, name="relevo live", pooled=False, settings=SESSION)
        self._listeners = set[Listener]()
        self._lock = threading.Lock()  # of what the watch's thread looks at
        self._joining = list[Listener]()
        self._left_at = 0.0
        self._stopped = False
        self._watch: Watch | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        weakref.finalize(self, os.close, self._wake)

    @property
    def place(self) -> Place | None:
        """The place of somebody who reads everything now, for a page that is made; None while nobody watches."""
        watch = self._watch
        return None if watch is None else watch.place

    def join(self, place: Place | None) -> Listener:
        """A new listener who has everything up to `place`. Raises Refused (503) if there is no room for one more."""
        if self._stopped:
            raise Refused(503, "The server is stopping; try again.")
        if len(self._listeners) >= MOST:
            raise Refused(503, f"{MOST} streams are open, and no more are served; close some, or try again.")
        self._loop = asyncio.get_running_loop()
        listener = Listener(place)
        with self._lock:
            if self._watch is None:
                watch = Watch(self._engine, self, self._wake)
                try:  # before it is noted: where no thread is to be had, the next listener asks for one again
                    threading.Thread(target=watch.run, name="live watch", daemon=True).start()
                except RuntimeError:
                    raise Refused(503, "The server can start no thread now; try again.") from None
                self._watch = watch
                self._loop.call_later(GUARD, self._guard, watch)
            self._joining.append(listener)
        self._listeners.add(listener)
        os.eventfd_write(self._wake, 1)
        return listener

    def leave(self, listener: Listener) -> None:
        """The listener's stream has ended."""
        self._listeners.discard(listener)
        self._left_at = time.monotonic()

    def stop(self) -> None:
        """End all streams, and let nobody in any more."""
        self._stopped = True
        for listener in self._listeners:
            listener.close()
        os.eventfd_write(self._wake, 1)

    def _guard(self, watch: Watch) -> None:
        if watch is not self._watch or self._loop is None:
            return
        busy = watch.busy
        if busy is not None and time.monotonic() - busy[0] > HANGS:
            cut(busy[1])
        self._loop.call_later(GUARD, self._guard, watch)

    # What the watch calls, in its own thread.

    def tell(self, messages: Sequence[bytes]) -> None:
        """Give the messages to all listeners that have begun."""
        self._in_loop(lambda: self._each(lambda listener: listener.give(messages) if listener.begun else None))

    def begin(self, listener: Listener, messages: Sequence[bytes]) -> None:
        """Give the listener its first messages; from now on it is told what all are."""

        def first() -> None:
            listener.begun = True
            listener.give(messages)

        self._in_loop(first)

    def away(self) -> None:
        """Say that Postgres is away to those who do not know."""
        self._in_loop(lambda: self._each(lambda listener: self._turn(listener, away=True)))

    def back(self) -> None:
        """Say that Postgres is back to those who know that it was away."""
        self._in_loop(lambda: self._each(lambda listener: self._turn(listener, away=False)))

    def joining(self) -> list[Listener]:
        """Who came since the last time."""
        with self._lock:
            joining, self._joining = self._joining, []
        return joining

    def watched(self, watch: Watch) -> bool:
        """Whether the watch is to go on; once it is not, another one begins with the next listener."""
        with self._lock:
            if watch is not self._watch:
                return False
            going_on = not self._stopped and bool(self._listeners or self._joining or time.monotonic() - self._left_at < LINGER)
            if not going_on:
                self._watch = None
        return going_on

    def _in_loop(self, act: Callable[[], None]) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed: the server has stopped
            self._loop.call_soon_threadsafe(act)

    def _each(self, act: Callable[[Listener], None]) -> None:
        for listener in list(self._listeners):
            act(listener)

    @staticmethod
    def _turn(listener: Listener, *, away: bool) -> None:
        if listener.away != away:
            listener.away = away
            listener.give([message("away" if away else "back", {})])
