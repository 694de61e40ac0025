"""The measured tasks: no-ops that note their times."""

import time

from benchmarks.rig import mark
from workers import celery


@celery.task(name="mark")
def mark_task(lane: int, number: int) -> None:
    mark(lane, number)


@celery.task(name="nap")
def nap(seconds: float) -> None:
    time.sleep(seconds)
