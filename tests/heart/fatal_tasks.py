"""A module whose worker's loop breaks as soon as a body runs."""

import time
from typing import Any

from celery import signals

from tests.cases.probe_tasks import body
from workers import celery


@signals.worker_ready.connect(weak=False)
def break_the_loop(sender: Any, **_: Any) -> None:
    def broken() -> None:
        raise AssertionError("no way out of here")

    sender.hub.call_later(3, lambda: sender.hub.call_soon(broken))


@celery.task(bind=True, name="fatal.nap")
def nap(self: Any) -> None:
    with body(self):
        time.sleep(60)
