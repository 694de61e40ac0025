"""The page of workers: who lives, what they run, who went away and left something, and the tasks that they offer."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import page
from app.api_call import Calling
from app.crews import crews
from ordering import tasks, workforce
from ordering.tasks import NO_LIMIT, TaskView
from ordering.workforce import Workforce

router = APIRouter(include_in_schema=False)


@router.get("/workers")
def workers(request: Request, call: Calling) -> Response:
    """Who works now."""

    def read(tx: Connection) -> tuple[Workforce, list[TaskView]]:
        return workforce.workforce(tx), tasks.offered(tx)

    found, offered = call.read(read)
    return page.render(request, call, "workers.html", found=found, crews=crews(found.workers), offered=offered, no_limit=NO_LIMIT)
