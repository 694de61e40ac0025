"""Tasks that give back what cannot be stored: their arguments are JSON within a string, since such text is refused at the door."""

import json
from typing import Any

from tests.cases.probe_tasks import body
from workers import celery


@celery.task(bind=True, name="text.give")
def give(self: Any, written: str) -> Any:
    """Return the value."""
    with body(self):
        return json.loads(written)


@celery.task(bind=True, name="text.fail")
def fail(self: Any, written: str) -> None:
    """Raise ValueError with this text."""
    with body(self):
        raise ValueError(json.loads(written))


@celery.task(bind=True, name="text.again", max_retries=1)
def again(self: Any, written: str) -> None:
    """Ask for a retry with these arguments."""
    with body(self):
        raise self.retry(args=[json.loads(written)], countdown=0, exc=ValueError(json.loads(written)))
