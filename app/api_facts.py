"""Facts over HTTP: emit one, list and show them, and who hears what."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app.api_body import body_of, takes
from app.api_call import PAGE, Calling, Cursor, Digits, Limit, written
from app.api_docs import problems
from app.schemas import BIGGEST_ID, FactBody
from ordering import facts, subscriptions
from ordering.errors import Invalid
from ordering.facts import Emitted, Fact, FactLine
from ordering.subscriptions import Subscription, SubscriptionView
from ordering.text import checked

router = APIRouter(prefix="/api", tags=["facts"])


class FactList(BaseModel):
    """Facts, the latest first; `next` is the cursor of the following page, or null at the end."""

    items: list[FactLine]
    next: str | None


class SubscriptionList(BaseModel):
    """All subscriptions, by type."""

    items: list[SubscriptionView]


@router.post(
    "/facts",
    summary="Emit a fact",
    status_code=201,
    response_model=Emitted,
    responses={200: {"description": "It was there already"}, **problems(409, 422)},
    openapi_extra=takes(FactBody, {"type": "invoice.issued", "data": {"invoice": 4711}, "key": "4711"}),
)
def emit(call: Calling, body: Annotated[FactBody, Depends(body_of(FactBody))]) -> Response:
    """It is stored with one item for each subscription. 201 when it is new, 200 when the same type, key and data were there."""

    def verb(tx: Connection) -> Emitted:
        return facts.emitted(tx, facts.emit(tx, body.type, body.data, key=body.key))

    return call.write(verb, lambda done: 201 if done.new else 200)


@router.get("/facts", summary="List facts", response_model=FactList, responses=problems(422))
def list_(
    call: Calling,
    type: Annotated[str | None, Query(max_length=200, description="Only facts of this type.")] = None,
    unheard: Annotated[bool, Query(description="Only what nobody subscribed to at that moment.")] = False,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response:
    """The latest first, long data cut."""
    if cursor is not None and not re.fullmatch("[0-9]{1,19}", cursor, re.ASCII):
        raise Invalid("cursor", f"{cursor[:80]!r} is none; use the one that the page before gave.")
    before = None if cursor is None else int(cursor)
    found = call.read(lambda tx: facts.facts(tx, type=type, unheard=unheard, limit=limit, before=before))
    return written({"items": found.facts, "next": None if found.next is None else str(found.next)})


@router.get("/facts/{fact}", summary="Show a fact", response_model=Fact, responses=problems(404, 422))
def show(call: Calling, fact: Annotated[int, Digits, Path(ge=1, le=BIGGEST_ID, description="The fact's id.")]) -> Response:
    """With its data and the items that it became."""
    return written(call.read(lambda tx: facts.fact(tx, fact)))


@router.get("/subscriptions", summary="List subscriptions", response_model=SubscriptionList, responses=problems(422))
def heard(call: Calling, type: Annotated[str | None, Query(max_length=200, description="Only of this type of facts.")] = None) -> Response:
    """Which task hears which facts, in which stream."""
    return written({"items": [each for each in call.read(subscriptions.subscriptions) if type in (None, each.type)]})


@router.delete("/subscriptions", summary="Unsubscribe a task", response_model=Subscription, responses=problems(404, 409, 422))
def unsubscribe(
    call: Calling,
    type: Annotated[str, Query(max_length=200, description="The type of facts.")],
    task: Annotated[str, Query(max_length=200, description="The task that hears them no more.")],
    reason: Annotated[str, Query(max_length=2000, description="Why, for the trail.")] = "",
) -> Response:
    """What it was. Items that facts have become stay; a worker whose task still says `on=` subscribes it again when it starts."""
    said = checked("reason", reason, 2000)
    return call.write(lambda tx: subscriptions.unsubscribe(tx, type, task, actor=call.actor, reason=said))
