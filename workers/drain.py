"""The end of the pool: its parent listens to the pool processes until the last of them is gone.

Celery listens only while it knows of a job, and at a stop it forgets the jobs that no process has confirmed yet. A process that
had just been given one runs it, waits 30 s for its parent to hear the result, and the stop waits for that process.
Celery also looks at one idle process after the other, half a second each: with a hundred slots a result waits for most of a minute.
"""

from __future__ import annotations

import select
from typing import Any

from billiard.pool import TERMINATE, WorkersJoined
from celery.concurrency.asynpool import ResultHandler

LOOK = 0.1  # seconds between looks for processes that have ended


def install() -> None:
    """Make the pool of this process end so. Call before it is started."""
    # Hook: called by the pool's join, once, after each process was told to end.
    ResultHandler.on_stop_not_started = _listen


def _listen(handler: Any) -> None:
    processes = handler.fileno_to_outq
    while handler._state != TERMINATE:
        if handler.check_timeouts is not None:
            handler.check_timeouts()
        try:
            handler.join_exited_workers(shutdown=True)
        except WorkersJoined:
            return
        poll = select.poll()
        for descriptor in processes:
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(LOOK * 1000):
            handler._flush_outqueue(descriptor, lambda gone: processes.pop(gone, None), processes, handler.on_state_change)
