"""Signals and workers over HTTP: each plan in figures, and who works."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import BaseModel

from app.api_call import Calling, written
from app.api_docs import problems
from ordering import workforce
from ordering.signals import Signals, signals
from ordering.workforce import Workforce

router = APIRouter(prefix="/api")

EXAMPLE_SIGNALS = {
    "plan": "mails",
    "concurrency": 8,
    "depth": 3,
    "oldest_age": 4.2,
    "retry_ratio": 0.05,
    "dead_letters": 1,
    "blocked": 0,
    "dispatched_age": 0.4,
    "running_age": 1.3,
    "items": {"waiting": 3, "postponed": 0, "dispatched": 1, "running": 4, "failed": 1, "interrupted": 0},
}
EXAMPLE_ITEM = {"id": 12, "plan": "nightly", "title": "Audit", "task": "shell", "state": "running", "since": "2030-01-31T09:00:00Z"}
EXAMPLE_PROCESS = {"session": 7, "worker": "worker@host", "host": "host", "pid": 4711, "since": "2030-01-31T08:00:00Z"}
EXAMPLE_WORKFORCE = {
    "now": "2030-01-31T09:00:05Z",
    "workers": [{**EXAMPLE_PROCESS, "runs": 1, "items": [EXAMPLE_ITEM]}],
    "lost": [
        {
            **EXAMPLE_PROCESS,
            "session": 5,
            "lost_at": "2030-01-31T07:59:58Z",
            "reason": "process lost",
            "items": [{**EXAMPLE_ITEM, "id": 9, "state": "interrupted"}],
        }
    ],
    "tasks": [{"name": "shell", "queue": "relevo", "plan": None, "batch": False, "since": "2030-01-01T00:00:00Z"}],
}


class SignalsOfAll(BaseModel):
    """One line for each plan, by name; lengths of time in seconds."""

    items: list[Signals]


def _answer(example: object) -> dict[str, object]:
    return {"content": {"application/json": {"examples": {"1": {"value": example}}}}}


@router.get(
    "/signals",
    summary="Every plan in figures",
    tags=["signals"],
    response_model=SignalsOfAll,
    responses={**problems(), 200: _answer({"items": [EXAMPLE_SIGNALS]})},
)
def signals_(call: Calling) -> Response:
    """Depth, oldest age, retry ratio, dead letters, and for how long it has been blocked; read at this moment."""
    return written({"items": call.read(signals)})


@router.get(
    "/workers",
    summary="Who works",
    tags=["signals"],
    response_model=Workforce,
    responses={**problems(), 200: _answer(EXAMPLE_WORKFORCE)},
)
def workers_(call: Calling) -> Response:
    """The pool processes that are alive and what each runs, those that went away within a day and what they left, the tasks on offer."""
    return written(call.read(workforce.workforce))
