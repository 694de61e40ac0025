"""Two transactions in a race whose order is seen, not hoped for."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Connection, Engine, text

T = TypeVar("T")
WAITING = text("""
    select exists (select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and state = 'active' and pid <> pg_backend_pid())
""")
DEADLINE = 60.0  # seconds


def race(engine: Engine, first: Callable[[Connection], object], second: Callable[[Connection], T]) -> T:
    """Run `first` and keep its transaction open until `second`, in another, is seen waiting for a lock; what `second` returns."""
    with ThreadPoolExecutor(1) as pool, engine.connect() as tx, engine.connect() as watcher:
        with tx.begin():
            first(tx)
            answer = pool.submit(_alone, engine, second)
            deadline = time.monotonic() + DEADLINE
            while not watcher.execute(WAITING).scalar_one():
                watcher.rollback()
                assert not answer.done(), f"the second did not wait: {answer.result()!r}"
                assert time.monotonic() < deadline, "the second was not seen waiting"
        return answer.result(DEADLINE)


def _alone(engine: Engine, verb: Callable[[Connection], T]) -> T:
    with engine.begin() as tx:
        return verb(tx)
