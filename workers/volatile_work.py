"""Volatile work: calls that a web process makes after its response, in threads of its own. No retry, no persistence; light: no Celery."""

from __future__ import annotations

import atexit
import contextvars
import inspect
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from prometheus_client import Counter

logger = logging.getLogger(__name__)

THREADS = 4  # calls that run at once
QUEUE = 1000  # calls that wait for a thread
SHUTDOWN_SECONDS = 5.0
OUTCOMES = ("done", "failed", "refused", "abandoned")

total = Counter("relevo_volatile", "Volatile calls by how they ended.", ["outcome"])  # exposed as relevo_volatile_total
for _outcome in OUTCOMES:
    total.labels(_outcome)  # present as 0

# One lock for everything here, also around the counter: it is held across a fork, so that a child never meets a lock that nobody
# will release. Reentrant, because a signal handler may come in between.
_lock = threading.RLock()


class _Call:
    def __init__(self, run: Callable[[], Any], name: str) -> None:
        self.run, self.name, self.abandoned = run, name, False


class _Pool:
    """Threads and the calls that wait for them. Everything but `_work` is called under the lock."""

    def __init__(self) -> None:
        self.changed = threading.Condition(_lock)
        self.waiting: deque[_Call] = deque()
        self.running: set[_Call] = set()
        self.threads = 0
        self.ending = False
        self.was_full = False

    def take(self, call: _Call) -> str | None:
        """Queue the call; a sentence if it cannot be."""
        if self.ending:
            return "the process is shutting down"
        if len(self.waiting) >= QUEUE:
            return f"{QUEUE} calls wait already"
        if self.threads < THREADS and self.threads - len(self.running) <= len(self.waiting):
            try:
                # Daemons: one that hangs must not keep the process from ending.
                threading.Thread(target=self._work, name=f"volatile-{self.threads + 1}", daemon=True).start()
                self.threads += 1
            except RuntimeError as error:  # no threads left, or the interpreter is on its way out
                if not self.threads:
                    return str(error)
        self.waiting.append(call)
        self.changed.notify()
        return None

    def _work(self) -> None:
        while True:
            with self.changed:
                while not self.waiting:
                    if self.ending:
                        return
                    self.changed.wait()
                call = self.waiting.popleft()
                self.running.add(call)
            outcome = _outcome_of(call)
            with self.changed:
                self.running.discard(call)
                if not call.abandoned:
                    total.labels(outcome).inc()
                self.changed.notify_all()

    def end(self, within: float) -> int:
        """Take no more, wait for what there is, and give up what has not ended then; how many calls that are."""
        deadline = time.monotonic() + within
        self.ending = True
        self.changed.notify_all()
        while self.waiting or self.running:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self.changed.wait(left)
        abandoned = [*self.running, *self.waiting]
        self.waiting.clear()
        for call in abandoned:
            call.abandoned = True
            total.labels("abandoned").inc()
            logger.warning("Volatile work was abandoned at shutdown: %s", call.name)
        return len(abandoned)


_pool: _Pool | None = None


def volatile(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> bool:
    """Call `fn(*args, **kwargs)` soon, in a thread of this process; whether it was taken.

    For what may be lost without anybody's harm: a metric, a cache entry. It is not retried and not stored, and it dies with the process.
    At most THREADS calls run at once and QUEUE wait; beyond that the call is refused: False, a warning, and counted. What it raises is
    logged and counted. Context variables are the caller's. Returns at once. Raises TypeError for what cannot be called in a thread.
    """
    if not callable(fn) or inspect.iscoroutinefunction(fn):
        raise TypeError(f"volatile: {fn!r} is no plain function; give one, and leave coroutines to the event loop (asyncio.create_task).")
    global _pool
    call = _Call(partial(contextvars.copy_context().run, fn, *args, **kwargs), getattr(fn, "__qualname__", type(fn).__qualname__))
    with _lock:
        if _pool is None:
            _pool = _Pool()
        pool = _pool
        refusal = pool.take(call)
        if refusal is None:
            pool.was_full = False
            return True
        total.labels("refused").inc()
        # Once until there is room again: a flood of calls is not to become a flood of lines.
        told, pool.was_full = pool.was_full, True
    if not told:
        logger.warning("Volatile work was refused: %s (%s)", call.name, refusal)
    return False


def volatile_shutdown(within: float = SHUTDOWN_SECONDS) -> int:
    """Wait up to `within` seconds for what was taken, and give up the rest; how many calls were given up. Called again at exit.

    Meanwhile new calls are refused; afterwards a new call begins anew. It blocks: a coroutine says
    `await asyncio.to_thread(volatile_shutdown)`.
    """
    global _pool
    with _lock:
        pool = _pool
        if pool is None:
            return 0
        abandoned = pool.end(within)
        if _pool is pool:
            _pool = None
    return abandoned


def _outcome_of(call: _Call) -> str:
    try:
        result = call.run()
        if inspect.iscoroutine(result):
            result.close()
            raise TypeError(f"{call.name} returned a coroutine, which nothing awaits here")
    except BaseException:  # SystemExit too: a thread that ends would leave the pool short
        logger.exception("Volatile work failed: %s", call.name)
        return "failed"
    return "done"


def _renew() -> None:
    """In a forked child: the threads are the parent's, and so are the calls; the child begins with nothing, and counts from 0."""
    global _lock, _pool
    _lock, _pool = threading.RLock(), None
    for outcome in OUTCOMES:
        total.labels(outcome).reset()


os.register_at_fork(before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_renew)
atexit.register(volatile_shutdown)
