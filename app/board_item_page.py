"""An item's page: what it is, its attempts and steps on a time line, what it printed, where it came from, and what was done to it."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import json_text, page
from app.act import Place, page_at
from app.api_call import Call, Calling
from app.api_item import ItemId
from app.item_arguments import arguments
from app.json_text import JsonText
from app.page import Refusal
from app.timeline import timeline
from app.typed import typed
from ordering import evidence, history, origin, rules, trail, views
from ordering.evidence import Evidence
from ordering.history import History
from ordering.model import Item
from ordering.origin import Origin
from ordering.rules import Rules
from ordering.trail import Event
from ordering.views import PlanView

router = APIRouter(include_in_schema=False)
EVENTS = 100  # of its trail, the latest
RESULT_SHOWN = 2_000  # characters of a step's result


@dataclass(frozen=True)
class ItemPage:
    """What the page shows, read in one transaction."""

    history: History
    plan: PlanView
    origin: Origin
    rules: Rules
    evidence: Evidence
    events: list[Event]

    @property
    def item(self) -> Item:
        """The item itself."""
        return self.history.item


def read(tx: Connection, item_id: int) -> ItemPage:
    """What there is to show of the item with this id. Raises UnknownItem."""
    found = history.history(tx, item_id)
    events = list(trail.events(tx, item=item_id, limit=EVENTS).events)
    came_from = origin.origin(tx, found.item)
    known = evidence.evidence(tx, [item_id])[item_id]
    return ItemPage(found, views.plan(tx, found.item.plan), came_from, rules.rules(tx, item_id), known, events)


@router.get("/items/{item}")
def item(request: Request, call: Calling, item: ItemId) -> Response:
    """The item as it stands."""
    return show(request, call, item)


@page_at("/items/(?P<item>[0-9]{1,18})")
def refused(request: Request, call: Call, at: Place, refusal: Refusal) -> Response:
    """The item after a refusal, with the form open that was refused."""
    return show(request, call, int(at.parts["item"]), refusal=refusal, here=at.address)


def show(request: Request, call: Call, item_id: int, *, refusal: Refusal | None = None, here: str | None = None) -> Response:
    """The item's page."""
    found = call.read(lambda tx: read(tx, item_id))
    given = arguments(found.item)
    return page.render(
        request,
        call,
        "item.html",
        refusal.status if refusal else 200,
        here=here,
        refusal=refusal,
        form=typed(refusal),
        concerns=found.item.plan,
        page=found,
        line=timeline(found.history),
        arguments=json_text.readable(given),
        whole_arguments=json_text.editable(given),
        result=json_text.readable(found.item.result) if found.item.result is not None else None,
        step_result=_step_result,
    )


def _step_result(written: str) -> JsonText:
    return json_text.of_text(written, RESULT_SHOWN)
