"""Hooks into Celery's worker: what its parent process sees and a body cannot say."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from billiard.exceptions import WorkerLostError
from celery.concurrency.asynpool import AsynPool
from celery.worker.request import Request

logger = logging.getLogger(__name__)

# Set by workers.worker in the parent: called with a dispatch id and the reason, before the pool kills its process.
announce_cut: Callable[[str, str], None] = lambda dispatch_id, reason: None  # noqa: E731


class PlanRequest(Request):
    """Celery's view of one message in the parent process."""

    acknowledged: bool

    def acknowledge(self) -> None:
        """Hook: called when a pool process has taken the message. That the broker did not hear it is no harm: a copy is dropped."""
        if not self.acknowledged:
            self._on_ack(_LostAck(logger, {}), self._connection_errors)
            self.acknowledged = True

    def on_failure(self, exc_info: Any, send_failed_event: bool = True, return_ok: bool = False) -> Any:
        """Hook: a message has not ended well. A process that is gone is no failure of the body: whoever watches hears `revoked`."""
        error = getattr(exc_info.exception, "exc", exc_info.exception)
        gone = isinstance(error, (WorkerLostError, SystemExit))
        answer = super().on_failure(exc_info, send_failed_event and not gone, return_ok)
        if gone:
            self.send_event("task-revoked", terminated=True, signum=None, expired=False)
        return answer

    def on_timeout(self, soft: bool, timeout: float) -> None:
        """Hook: called before the pool kills the process at the hard time limit. The loss is then recorded as that failure."""
        if not soft:
            announce_cut(self.id, f"time limit: the body was killed after {timeout:g} s")
        super().on_timeout(soft, timeout)


class _LostAck(logging.LoggerAdapter[logging.Logger]):
    """Tells of a lost acknowledgement in one line, where kombu would log a traceback."""

    def critical(self, msg: object, *args: object, **_: object) -> None:
        self.warning("The broker was away when a message was acknowledged: " + str(msg), *args)


def watch_exits(on_exit: Callable[[int], None]) -> None:
    """Call `on_exit` in the parent whenever a pool process (pid) has ended, and let the pool replace it at once."""
    # Hook: AsynPool calls this method when a child's sentinel pipe closes, which may be before the child can be reaped; its
    # next look is a 5 s timer, and the slot is missing meanwhile (seen: 2.3-4 s; with these looks 20-36 ms).
    original = AsynPool._event_process_exit

    def event_process_exit(pool: Any, hub: Any, proc: Any) -> None:
        on_exit(proc.pid)
        original(pool, hub, proc)
        for delay in (0.01, 0.05, 0.25, 1.0):
            hub.call_later(delay, pool.maintain_pool)

    AsynPool._event_process_exit = event_process_exit
