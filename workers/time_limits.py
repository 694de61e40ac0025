"""Celery's time limits count a body alone: not how long Postgres takes to let it begin, nor to record how it ended."""

from __future__ import annotations

import time
from typing import Any

from celery.concurrency.asynpool import AsynPool
from kombu.asynchronous import get_event_loop

from workers import slate

CLOSE_ENOUGH = 0.001  # seconds before a limit that are not waited for


def install() -> None:
    """Make the pools of this process count so. Call before one is started."""
    # Hooks: called by timers of the parent's loop, which begin when a pool process takes the message.
    soft, hard = AsynPool._on_soft_timeout, AsynPool._on_hard_timeout

    def on_soft_timeout(pool: Any, job: int, soft_limit: float, hard_limit: float | None, hub: Any) -> None:
        left = _left(pool, job, soft_limit)
        if left > CLOSE_ENOUGH:
            pool._tref_for_id[job] = hub.call_later(left, pool._on_soft_timeout, job, soft_limit, hard_limit, hub)
        else:
            soft(pool, job, soft_limit, hard_limit, hub)

    def on_hard_timeout(pool: Any, job: int) -> None:
        result = pool._cache.get(job)
        left = 0.0 if result is None else _left(pool, job, result._timeout)
        if left > CLOSE_ENOUGH:
            pool._tref_for_id[job] = get_event_loop().call_later(left, pool._on_hard_timeout, job)
        else:
            hard(pool, job)

    AsynPool._on_soft_timeout, AsynPool._on_hard_timeout = on_soft_timeout, on_hard_timeout


def _left(pool: Any, job: int, limit: float) -> float:
    """How long, in seconds, the job's body may still run; all of its limit where none runs: it has not begun, or is over."""
    result = pool._cache.get(job)
    if result is None or result.ready():
        return 0.0
    since = slate.body_since(result._worker_pid)
    return limit if since is None else since + limit - time.monotonic()
