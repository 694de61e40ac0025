"""The page that describes the API, from its own description."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from app import page, problem
from app.api_call import Calling
from app.api_page import described

router = APIRouter(include_in_schema=False)


@router.get("/api")
def api(request: Request, call: Calling) -> Response:
    """Every route with its parameters, bodies, examples and problems."""
    kinds = {kind.word: kind for kind in [*problem.KINDS.values(), *problem.OF_STATUS.values(), problem.DEFECT]}
    if not hasattr(request.app.state, "described"):
        request.app.state.described = described(request.app.openapi())  # 50 ms; it never changes
    kinds_shown = sorted(kinds.values(), key=lambda kind: (kind.status, kind.word))
    return page.render(request, call, "api.html", api=request.app.state.described, kinds=kinds_shown, prefix=problem.PREFIX)


@router.get("/api/docs")
def docs() -> Response:
    """Where other frameworks have this page."""
    return page.to("/api")
