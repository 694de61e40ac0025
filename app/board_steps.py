"""The list of items with steps: what sleeps and until when, what runs behind which step."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from app import page
from app.api_call import Calling
from ordering import workflows

router = APIRouter(include_in_schema=False)
ROWS = 50


@router.get("/steps")
def steps(
    request: Request,
    call: Calling,
    state: Annotated[str, Query(max_length=40)] = "asleep",
    cursor: Annotated[str | None, Query(max_length=100)] = None,
) -> Response:
    """Items with steps that are in one state."""
    found = call.read(lambda tx: workflows.workflows(tx, state, limit=ROWS, after=cursor))
    return page.render(request, call, "steps.html", found=found, chosen=state, choices=workflows.CHOICES)
