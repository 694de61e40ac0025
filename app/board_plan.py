"""A plan's page: its head, what is unresolved, the line below it, what is postponed, what is done, and its trail."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import page, plan_asks, plan_query
from app.act import Place, page_at
from app.api_call import Call, Calling
from app.api_plans import PlanName, named
from app.caller import Role
from app.line_rows import row, rows
from app.page import Refusal
from app.plan_query import MOST_ROWS, ROWS, Query
from ordering import clock, evidence, glance, lines, listing, trail
from ordering.glance import Glance
from ordering.lines import Cursor, ItemLine
from ordering.model import UNRESOLVED

router = APIRouter(include_in_schema=False)
OF_UNRESOLVED, OUT, POSTPONED, SETTLED = 50, 50, 50, 20  # items of the other lists
TRAIL = 12  # events beside them


@router.get("/plans/{plan}")
def plan(request: Request, call: Calling, plan: PlanName) -> Response:
    """The plan as it stands."""
    return show(request, call, plan, plan_query.parsed(request.query_params.multi_items()))


@page_at("/plans/(?P<plan>[^/]+)")
def refused(request: Request, call: Call, at: Place, refusal: Refusal) -> Response:
    """The plan after a refusal, with the dialog open that the form stood in."""
    query = plan_query.parsed(at.query.items())
    if refusal.form.text("ask"):
        query = query.asking(refusal.form.text("ask")[:20], refusal.form.ids("item"))
    return show(request, call, named(at.parts["plan"]), query, refusal=refusal, here=at.address)


def show(request: Request, call: Call, name: str, query: Query, *, refusal: Refusal | None = None, here: str | None = None) -> Response:
    """The plan's page as `query` asks for it."""

    may = call.caller.role >= Role.OPERATE

    def read(tx: Connection) -> dict[str, Any]:
        found = glance.plan(tx, name)
        past = trail.events(tx, limit=TRAIL, plan_id=found.id).events
        given = {"plan": found, "query": query, "trail": past} | (plan_asks.asked(call, tx, found, query) if may else {})
        return given | (_filtered(tx, found, query) if query.filtered else _whole(tx, found, query))

    return page.render(
        request,
        call,
        "plan.html",
        refusal.status if refusal else 200,
        here=here,
        refusal=refusal,
        ask=query.ask if may else "",
        **call.read(read),
    )


def _whole(tx: Connection, plan: Glance, query: Query) -> dict[str, Any]:
    now = clock.now(tx)
    # One more than is shown: whoever drops a row at the end of the page has seen what follows it, or that nothing does.
    found = lines.waiting(tx, plan.id, limit=query.rows + 1, after=Cursor.parse(query.after) if query.after else None)
    shown, beyond = found.items[: query.rows], found.items[query.rows] if len(found.items) > query.rows else None
    unresolved = lines.unresolved(tx, plan.id, limit=OF_UNRESOLVED + 1)
    out = [] if plan.serial else lines.out(tx, plan.id, limit=OUT + 1)
    known = [item.id for item in unresolved[:OF_UNRESOLVED] if item.at_head]
    if plan.head is not None and plan.head.state not in UNRESOLVED:
        known.append(plan.head.id)
    return {
        "rows": rows(shown, now, beyond=beyond, from_the_top=not query.after),
        "follower": beyond.id if beyond else None,
        "more": _more(plan, query, shown[-1]) if beyond else None,
        "unresolved": unresolved,
        "out": out,
        "postponed": [row(item, now) for item in lines.postponed(tx, plan.id, limit=POSTPONED + 1)],
        "settled": lines.settled(tx, plan.id, limit=SETTLED),
        "evidence": evidence.evidence(tx, known),
    }


def _more(plan: Glance, query: Query, last: ItemLine) -> str:
    """This page with more rows, or, where it has as many as it may, the next one."""
    given = {"after": str(Cursor(last.position, last.id))}
    if query.rows < MOST_ROWS:
        given = {"rows": str(min(MOST_ROWS, query.rows + ROWS)), "after": query.after}
    return f"/plans/{plan.name}?{urlencode({name: value for name, value in given.items() if value})}"


def _filtered(tx: Connection, plan: Glance, query: Query) -> dict[str, Any]:
    found = listing.items(
        tx,
        plan.id,
        state=query.state or "unsettled",
        kind=query.kind or None,
        containing=query.text or None,
        limit=query.rows,
        after=query.after or None,
    )
    given = {"text": query.text, "kind": query.kind, "state": query.state, "after": found.next}
    more = f"/plans/{plan.name}?{urlencode({name: value for name, value in given.items() if value})}" if found.next else None
    now = clock.now(tx)
    return {"found": [row(item, now) for item in found.items], "more": more}
