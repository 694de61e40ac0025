"""The overview: what waits for a person in any plan, every plan at a glance, and the form of a new one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import board_all, page
from app.act import Place, act, page_at
from app.api_call import Call, Calling
from app.form import Fields
from app.line_rows import Row, rows
from app.page import Refusal
from ordering import clock, evidence, glance, needs, plans
from ordering.errors import Invalid
from ordering.lines import ItemLine
from ordering.model import OnFailure
from ordering.text import checked

router = APIRouter(include_in_schema=False)
PLANS = 24  # of one page
SHOWN = 5  # waiting items of a card
NEEDS = 20  # open decisions
COUNTED = 1_000  # items of one state on a card; the figure of a longer line comes from the signals


@router.get("/")
def home(
    request: Request,
    call: Calling,
    after: Annotated[str, Query(max_length=100)] = "",
    text: Annotated[str, Query(max_length=200)] = "",
    ask: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """All plans by name."""
    return show(request, call, after=after, text=text, ask=ask)


@page_at("/")
def refused(request: Request, call: Call, at: Place, refusal: Refusal) -> Response:
    """The overview after a refusal."""
    return show(
        request,
        call,
        after=at.query.get("after", ""),
        text=at.query.get("text", ""),
        ask=refusal.form.text("ask"),
        refusal=refusal,
        here=at.address,
    )


def show(
    request: Request, call: Call, *, after: str = "", text: str = "", ask: str = "", refusal: Refusal | None = None, here: str | None = None
) -> Response:
    """The overview: of the plans behind the name `after`, with `text` in name or title; `ask` is the dialog that is open."""
    containing = checked("text", text.strip(), 200) or None

    def read(tx: Connection) -> dict[str, Any]:
        found, following = glance.plans(tx, limit=PLANS, after=checked("after", after, 100), containing=containing, most=COUNTED)
        ids, now = [each.id for each in found], clock.now(tx)
        first = glance.first_waiting(tx, ids, limit=SHOWN + 1)
        return {
            "plans": found,
            "next": following,
            "waiting": {name: _rows(each, now) for name, each in first.items()},
            "beyond": {name: each[SHOWN].id for name, each in first.items() if len(each) > SHOWN},
            "unresolved": glance.first_unresolved(tx, ids, limit=1),
            "evidence": evidence.evidence(tx, (each.head.id for each in found if each.head is not None)),
            "needs": needs.needs(tx, limit=NEEDS),
            **(board_all.asked(call, tx, ask) if ask in ("run-all", "repair-all") else {}),
        }

    status = refusal.status if refusal else 200
    found = call.read(read)
    return page.render(request, call, "home.html", status, here=here, refusal=refusal, ask=ask, text=text, after=after, **found)


def _rows(found: Sequence[ItemLine], now: datetime) -> list[Row]:
    return rows(found[:SHOWN], now, beyond=found[SHOWN] if len(found) > SHOWN else None, from_the_top=True)


@router.post("/plans")
def create(request: Request, call: Calling, form: Fields) -> Response:
    """Make a plan, and go to its page."""
    name = form.text("name").strip()

    def verb(tx: Connection) -> None:
        if not name:
            raise Invalid("name", "is empty; write one.")
        concurrency = form.number("concurrency", 1, 10_000)
        plans.create(
            tx,
            name,
            actor=call.actor,
            title=form.text("title").strip(),
            concurrency=1 if concurrency is None else concurrency,
            on_failure=form.one_of("on_failure", OnFailure) or OnFailure.HALT,
            autostart=form.flag("autostart"),
        )

    return act(request, call, form, verb, to=f"/plans/{name}")
