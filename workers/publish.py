"""Publishing a dispatch: one kept connection per process, every call bounded, every failure one sentence."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar
from weakref import WeakSet

from celery import Celery

from workers import message
from workers.broker_wire import REDIS_OPTIONS, STEP_SECONDS, Wire, open_wire

T = TypeVar("T")


#: For so long after a failure nobody waits for the broker again, in seconds: what a round has to send costs one wait, not one each.
REST_SECONDS = 1.0


class BrokerUnavailable(Exception):
    """The broker did not answer within the bound. The text is one sentence for people."""


class QueueRefused(BrokerUnavailable):
    """The broker answered, and refused this queue; others may work."""


class Publisher:
    """Sends dispatches and counts messages over one connection per process.

    Threads share it, one call at a time. After a fork the child opens a connection of its own. After an error the
    connection is dropped, and the next call opens one; nothing is retried beyond replacing, once, a kept connection
    that has died since the last call. A broker that is away is asked again after REST_SECONDS; until then calls fail at once.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._lock = threading.Lock()
        self._wire: Wire | None = None
        self._away: tuple[float, str] = (0.0, "")  # until when no connection is tried, and why
        _publishers.add(self)

    def send(self, dispatch_id: str, task: str, queue: str, argsrepr: str, kwargsrepr: str) -> None:
        """Put one message for `dispatch_id` into `queue`.

        `argsrepr` and `kwargsrepr` are what Flower shows; a worker ignores them. Raises `BrokerUnavailable` within 3 s.
        QueueRefused, one of these, if only this queue is at fault. The message may have arrived all the same, so the caller must
        bear a second copy.
        """
        headers = message.headers(dispatch_id, task, argsrepr, kwargsrepr)
        self._call(lambda wire: wire.put(queue, headers))

    def queue_sizes(self, queues: Iterable[str]) -> dict[str, int]:
        """Messages in the broker per queue, 0 for a queue that does not exist; one that the broker refuses to count is left out.

        Raises `BrokerUnavailable` within 3 s.

        Redis and Valkey: ready in all priorities, plus delivered and unacknowledged (at most 10,000 are looked at).
        RabbitMQ: ready only, since the protocol tells no more. A worker fetches one message at a time, for a free slot,
        and acknowledges it before the body runs, so what is missing is one message per worker for some milliseconds.
        """
        names = list(dict.fromkeys(queues))
        return self._call(lambda wire: wire.sizes(names))

    def policy_warning(self) -> str | None:
        """One sentence when a Redis or Valkey broker may evict messages under memory pressure, else None.

        Raises `BrokerUnavailable` within 3 s.
        """
        policy = self._call(lambda wire: wire.eviction_policy())
        if policy in (None, "noeviction"):
            return None
        where = self._app.connection_for_write().as_uri()
        return (
            f"The broker at {where} has maxmemory-policy {policy} and may throw waiting messages away when its memory "
            "is full, which delays their items; set maxmemory-policy to noeviction."
        )

    def close(self) -> None:
        """Drop the connection; a later call opens a new one."""
        with self._lock:
            self._drop()

    def _call(self, work: Callable[[Wire], T]) -> T:
        if not self._lock.acquire(timeout=STEP_SECONDS):
            raise BrokerUnavailable("The broker is slow: another call of this process is still waiting for its answer.")
        try:
            if self._wire is not None:
                try:
                    return work(self._wire)
                except self._wire.errors as error:
                    blocked = self._wire.blocked
                    self._drop()
                    if blocked:
                        raise self._refusal(error, blocked) from error
            return self._reopen_and(work)
        finally:
            self._lock.release()

    def _reopen_and(self, work: Callable[[Wire], T]) -> T:
        until, said = self._away
        if time.monotonic() < until:
            raise BrokerUnavailable(said)
        connection = self._app.connection_for_write(connect_timeout=STEP_SECONDS, heartbeat=0, transport_options=REDIS_OPTIONS)
        try:
            self._wire = open_wire(connection)
            return work(self._wire)
        except (*connection.connection_errors, *connection.channel_errors, OSError) as error:
            blocked = self._wire is not None and self._wire.blocked
            answered = self._wire is not None and isinstance(error, connection.channel_errors) and not blocked
            self._drop()
            refusal = self._refusal(error, blocked)
            if answered:
                raise QueueRefused(str(refusal)) from error
            self._away = (time.monotonic() + REST_SECONDS, str(refusal))
            raise refusal from error

    def _refusal(self, error: Exception, blocked: bool) -> BrokerUnavailable:
        where = self._app.connection_for_write().as_uri()
        if blocked:
            return BrokerUnavailable(f"The broker at {where} takes no messages now: it reports a memory or disk alarm.")
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        return BrokerUnavailable(f"The broker at {where} is not available: {reason}.")

    def _drop(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.drop()

    def _forget(self) -> None:
        # The lock may have been held by a thread that does not exist on this side of the fork.
        self._lock = threading.Lock()
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.forget()


_publishers: WeakSet[Publisher] = WeakSet()


def _forget_all() -> None:
    for publisher in list(_publishers):
        publisher._forget()


os.register_at_fork(after_in_child=_forget_all)
