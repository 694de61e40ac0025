"""The measured tasks: no-ops that note their times."""

import time
from typing import Any

from benchmarks.rig import mark
from workers import celery


@celery.task(name="mark")
def mark_task(lane: int, number: int) -> None:
    mark(lane, number)


@celery.task(name="nap")
def nap(seconds: float) -> None:
    time.sleep(seconds)


@celery.task(name="noop")
def noop(number: int) -> None:
    """Nothing: what is measured is everything around it."""


@celery.task(bind=True, name="many_steps")
def many_steps(self: Any, count: int) -> float:
    """So many steps that do nothing; how long they took, in seconds."""
    start = time.monotonic()
    for number in range(count):
        self.step(f"step {number}", int)
    return time.monotonic() - start
