"""The page of workers: who lives, what they run, who went away and left something, and the tasks that they offer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import page
from app.api_call import Calling
from ordering import tasks, workforce
from ordering.tasks import NO_LIMIT, TaskView
from ordering.workforce import Worker, Workforce

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class Crew:
    """The pool processes of one worker on one host."""

    worker: str
    host: str
    processes: Sequence[Worker]

    @property
    def busy(self) -> int:
        """How many of them run something."""
        return sum(each.runs > 0 for each in self.processes)


def crews(workers: Sequence[Worker]) -> list[Crew]:
    """The processes by their worker, the longest there first."""
    by_name: dict[tuple[str, str], list[Worker]] = {}
    for each in workers:
        by_name.setdefault((each.worker, each.host), []).append(each)
    return [Crew(worker, host, processes) for (worker, host), processes in by_name.items()]


@router.get("/workers")
def workers(request: Request, call: Calling) -> Response:
    """Who works now."""

    def read(tx: Connection) -> tuple[Workforce, list[TaskView]]:
        return workforce.workforce(tx), tasks.offered(tx)

    found, offered = call.read(read)
    return page.render(request, call, "workers.html", found=found, crews=crews(found.workers), offered=offered, no_limit=NO_LIMIT)
