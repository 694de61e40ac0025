"""A task that only the newer workers of a rolling deploy know."""

from typing import Any

from tests.cases.probe_tasks import body
from workers import celery


@celery.task(bind=True, name="probe.later")
def later(self: Any) -> None:
    """Do nothing."""
    with body(self):
        pass
