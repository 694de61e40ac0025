"""How many tries a task asks for: `max_retries` counts when it is said, whatever it says."""

from typing import Any

import pytest
from celery import Celery
from sqlalchemy import Connection, text

from ordering import tasks
from ordering.tasks import NO_LIMIT, TaskInfo
from workers.task import PlanTask
from workers.worker import tries

app = Celery("tries", task_cls=PlanTask, set_as_current=False)


def body(*_: object) -> None:
    """Of every task here; none is run."""


class Patient(PlanTask):
    """A project's own base class."""

    abstract = True
    max_retries = 3


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({}, None),
        ({"max_retries": 3}, 4),
        ({"max_retries": 0}, 1),
        ({"max_retries": 7}, 8),
        ({"max_retries": 5000}, 5001),
        ({"max_retries": -1}, 1),
        ({"max_retries": None}, NO_LIMIT),
        ({"base": Patient}, 4),
        ({"base": Patient, "max_retries": 1}, 2),
        ({"bind": True, "autoretry_for": (ConnectionError,)}, None),
    ],
    ids=str,
)
def test_only_what_is_said_counts(said: dict[str, Any], wanted: int | None) -> None:
    app.task(name=f"said {said}", **said)(body)
    task = app.tasks[f"said {said}"]
    assert tries(task) == wanted
    if "max_retries" not in said:
        assert task.max_retries == 3, "Celery's own default for self.retry stays"


def test_no_limit_can_be_registered(tx: Connection) -> None:
    tasks.register(tx, [TaskInfo("for ever", "relevo", max_attempts=NO_LIMIT)])
    assert tx.execute(text("select max_attempts from relevo.task")).scalar_one() == NO_LIMIT
