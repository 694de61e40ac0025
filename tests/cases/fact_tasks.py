"""Tasks that hear facts of the cases, in two streams."""

from typing import Any

from tests.cases.probe_tasks import body
from workers import celery


@celery.task(bind=True, name="probe.draw", on="case.happened", plan="drawing")
def draw(self: Any, data: dict[str, Any]) -> Any:
    """Return the data."""
    with body(self):
        return data


@celery.task(bind=True, name="probe.notify", on=["case.happened", "case.other"], plan="telling")
def notify(self: Any, data: dict[str, Any]) -> Any:
    """Return the data."""
    with body(self):
        return data


@celery.task(bind=True, name="probe.count", on="case.happened", plan="telling")
def count(self: Any, data: dict[str, Any]) -> Any:
    """Return the data."""
    with body(self):
        return data
