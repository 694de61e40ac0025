"""What the search of the top bar finds: plans and items, over all plans."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from app import page
from app.api_call import Calling
from ordering import find

router = APIRouter(include_in_schema=False)
ROWS = 50


@router.get("/find")
def find_(request: Request, call: Calling, q: Annotated[str, Query(max_length=500)] = "") -> Response:
    """Items by id, key and title, plans by name and title; an id that is one leads to its item at once where nothing else is found."""
    found = call.read(lambda tx: find.find(tx, q, limit=ROWS)) if q.strip() else None
    if found is not None and not found.plans and len(found.items) == 1 and q.strip().lstrip("#") == str(found.items[0].id):
        return page.to(f"/items/{found.items[0].id}")
    return page.render(request, call, "find.html", q=q.strip(), found=found, scan=find.SCAN)
