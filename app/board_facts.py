"""The pages of facts: the list, one fact with the items it became, the form that emits one, and who hears them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import given, json_text, page
from app.act import Place, act, page_at
from app.api_call import Call, Calling, Digits
from app.form import Fields, whole
from app.page import Refusal
from app.schemas import BIGGEST_ID
from app.typed import typed
from ordering import facts, subscriptions
from ordering.errors import Invalid

router = APIRouter(include_in_schema=False)
ROWS = 50


@router.get("/facts")
def list_(
    request: Request,
    call: Calling,
    type: Annotated[str, Query(max_length=200)] = "",
    unheard: bool = False,
    cursor: Annotated[str, Query(max_length=30)] = "",
) -> Response:
    """Facts, the latest first, and who hears what."""
    return show(request, call, type=type.strip(), unheard=unheard, cursor=cursor)


def show(
    request: Request,
    call: Call,
    *,
    type: str = "",
    unheard: bool = False,
    cursor: str = "",
    refusal: Refusal | None = None,
    here: str | None = None,
) -> Response:
    """The page, or a refused form of it with what was typed."""
    before = whole("cursor", cursor, 1, BIGGEST_ID) if cursor else None
    if type:
        facts.check_type("type", type)
    found, heard = call.read(
        lambda tx: (facts.facts(tx, type=type or None, unheard=unheard, limit=ROWS, before=before), subscriptions.subscriptions(tx))
    )
    return page.render(
        request,
        call,
        "facts.html",
        refusal.status if refusal else 200,
        here=here,
        refusal=refusal,
        form=typed(refusal),
        found=found,
        heard=heard,
        type=type,
        unheard=unheard,
        types=sorted({each.type for each in heard}),
    )


@router.get("/facts/{fact}")
def one(request: Request, call: Calling, fact: Annotated[int, Digits, Path(ge=1, le=BIGGEST_ID)]) -> Response:
    """One fact with the items that it became."""
    found = call.read(lambda tx: facts.fact(tx, fact))
    return page.render(request, call, "fact.html", fact=found, data=json_text.readable(found.data))


@page_at("/facts")
def refused(request: Request, call: Call, at: Place, refusal: Refusal) -> Response:
    """The page after a refusal."""
    query = at.query
    return show(
        request,
        call,
        type=query.get("type", ""),
        unheard="unheard" in query,
        cursor=query.get("cursor", ""),
        refusal=refusal,
        here=at.address,
    )


@router.post("/facts")
def emit(request: Request, call: Calling, form: Fields) -> Response:
    """Emit a fact, and show it."""
    emitted: list[int] = []

    def verb(tx: Connection) -> None:
        data = given.json_value("data", form.given("data") or "{}")
        emitted.append(facts.emit(tx, form.text("type").strip(), data, key=form.given("key")))

    return act(request, call, form, verb, back="/facts", to=lambda: f"/facts/{emitted[-1]}")


@router.post("/subscriptions/remove")
def unsubscribe(request: Request, call: Calling, form: Fields) -> Response:
    """Let a task hear a type of facts no more, once the box that asks for it is ticked."""

    def verb(tx: Connection) -> None:
        if not form.flag("sure"):
            raise Invalid("sure", "is not ticked; tick it to say that the task shall hear these facts no more.")
        subscriptions.unsubscribe(tx, form.text("type"), form.text("task"), actor=call.actor, reason=form.text("reason").strip())

    return act(request, call, form, verb, back="/facts")
