"""The trail as a page: who did what, filtered and page by page, with an undo where there still is one."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import event_words, page
from app.act import Place, act, page_at
from app.api_call import Call, Calling, Digits
from app.form import Fields, whole
from app.page import Refusal
from app.schemas import BIGGEST_ID
from ordering import plans, trail, undo
from ordering.text import checked

router = APIRouter(include_in_schema=False)
ROWS = 100
FILTERS = ("plan", "item", "actor", "action", "text")
ACTIONS = (
    "add", "move", "edit", "postpone", "cancel", "start", "pause", "resume", "retry", "skip", "resolve", "undo", "create", "remove",
    "interrupt", "requeue", "retake", "fence", "refuse", "drain", "subscribe", "unsubscribe", "miss", "prune",
)  # fmt: skip


@router.get("/trail")
def trail_(
    request: Request,
    call: Calling,
    plan: Annotated[str, Query(max_length=100)] = "",
    item: Annotated[str, Query(max_length=30)] = "",
    actor: Annotated[str, Query(max_length=200)] = "",
    action: Annotated[str, Query(max_length=40)] = "",
    text: Annotated[str, Query(max_length=200)] = "",
    cursor: Annotated[str, Query(max_length=30)] = "",
) -> Response:
    """Events, the latest first."""
    return show(request, call, {"plan": plan, "item": item, "actor": actor, "action": action, "text": text}, cursor)


@page_at("/trail")
def refused(request: Request, call: Call, at: Place, refusal: Refusal) -> Response:
    """The trail after an undo that was refused."""
    asked = {name: at.query.get(name, "") for name in FILTERS}
    return show(request, call, asked, at.query.get("cursor", ""), refusal=refusal, here=at.address)


def show(
    request: Request, call: Call, asked: dict[str, str], cursor: str, *, refusal: Refusal | None = None, here: str | None = None
) -> Response:
    """The page with the filters that are `asked` for. Raises Invalid, UnknownPlan."""
    filters = {name: checked(name, value.strip(), 200) for name, value in asked.items() if value.strip()}
    before = trail.parsed(cursor) if cursor else None
    item = whole("item", filters["item"], 1, BIGGEST_ID) if "item" in filters else None

    def read(tx: Connection) -> trail.Page:
        plan_id = plans.get(tx, filters["plan"]).id if "plan" in filters else None
        who, what, containing = (filters.get(name) for name in ("actor", "action", "text"))
        return trail.events(tx, limit=ROWS, before=before, plan_id=plan_id, item=item, actor=who, action=what, containing=containing)

    found = call.read(read)
    return page.render(
        request,
        call,
        "trail.html",
        refusal.status if refusal else 200,
        here=here,
        refusal=refusal,
        found=found,
        filters=filters,
        following=f"/trail?{urlencode({**filters, 'cursor': found.next})}" if found.next else "",
        actions={each: event_words.verb(each) for each in ACTIONS},
    )


@router.post("/events/{event}/undo")
def undo_(request: Request, call: Calling, form: Fields, event: Annotated[int, Digits, Path(ge=1, le=BIGGEST_ID)]) -> Response:
    """Take back a move, a postponement, or the cancel of what had not started."""
    return act(request, call, form, lambda tx: undo.undo(tx, event, actor=call.actor), back="/trail")
