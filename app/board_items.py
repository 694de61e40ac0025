"""What a person does with the ticked items of a plan, one or many: move, postpone, cancel, and the three decisions.

All in one transaction. What cannot be done is left as it is and named; where nothing could be done, the first refusal is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import given
from app.act import Left, act
from app.api_call import Call, Calling
from app.api_plans import PlanName
from app.form import Fields, Form
from app.plan_query import MOST_TICKED
from ordering import clock, decision, items, move, place, plans
from ordering.errors import Invalid, RelevoError
from ordering.model import After, Before, First, Last, Place

router = APIRouter(prefix="/plans/{plan}", include_in_schema=False)


def each(tx: Connection, item_ids: Iterable[int], verb: Callable[[int], object]) -> Left:
    """Run `verb` on each item; the ids of those that refused. Raises the first refusal if all did."""
    left, first, done = Left(), None, 0
    for item_id in item_ids:
        try:
            with tx.begin_nested():
                verb(item_id)
            done += 1
        except RelevoError as error:
            left.append(item_id)
            first = first or error
    if first is not None and not done:
        raise first
    return left


def ticked(form: Form) -> list[int]:
    """The items of the form. Raises Invalid if there are none or too many."""
    found = form.ids("item")
    if not found:
        raise Invalid("item", "is missing; tick at least one.")
    if len(found) > MOST_TICKED:
        raise Invalid("item", f"{len(found)} are ticked; take at most {MOST_TICKED} at a time.")
    return found


@router.post("/move")
def move_(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Move the ticked items to one place, in the order in which they stand."""

    def verb(tx: Connection) -> Left:
        wanted, seen = ticked(form), given.seen(form.given("seen"))
        held = plans.lock_by_name(tx, plan)
        to = destination(tx, held.id, form, wanted)
        behind: list[int] = []

        def one(item_id: int) -> None:
            if behind:
                move.move(tx, item_id, After(behind[-1]), actor=call.actor)
            else:
                move.move(tx, item_id, to, actor=call.actor, seen=seen)
            behind.append(item_id)

        return each(tx, place.in_order(tx, wanted), one)

    return act(request, call, form, verb, back=f"/plans/{plan}")


def destination(tx: Connection, plan_id: int, form: Form, moving: list[int]) -> Place:
    """The place that the form names: first, last, before or after an item, at a position. Raises Invalid."""
    where = form.text("place")
    neighbour = form.id("neighbour")
    match where:
        case "first":
            return First()
        case "last":
            return Last()
        case "before" | "after":
            if neighbour is None:
                raise Invalid("neighbour", "is missing; write the number of the item that they go next to.")
            if neighbour in moving:
                raise Invalid("neighbour", f"item {neighbour} is one of those that move; name another one.")
            return Before(neighbour) if where == "before" else After(neighbour)
        case "position":
            return place.at(tx, plan_id, given.position("position", form.text("position")), but=moving)
        case _:
            raise Invalid("place", "is missing; choose the top, the end, a position, or before or after an item.")


@router.post("/postpone")
def postpone(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Take the ticked items out of the line until a time."""

    def verb(tx: Connection) -> Left:
        wanted, until, why = ticked(form), moment(form, clock.now(tx)), form.text("reason").strip()
        return each(tx, wanted, lambda item_id: items.postpone(tx, item_id, until, actor=call.actor, reason=why))

    return act(request, call, form, verb, back=f"/plans/{plan}")


def moment(form: Form, now: datetime) -> datetime:
    """The time that the form names: `when` is a length of time from now, or `at`, and then `until` says it in UTC. Raises Invalid."""
    when = form.text("when", "at")
    if when != "at":
        return now + given.duration("when", when)
    until = form.given("until")
    if until is None:
        raise Invalid("until", "is empty; choose a time.")
    return given.moment("until", until if any(mark in until[10:] for mark in "Zz+-") else f"{until}Z")


@router.post("/cancel")
def cancel(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Settle the ticked items; a running body is stopped."""

    def verb(tx: Connection) -> Left:
        why = form.text("reason").strip()
        return each(tx, ticked(form), lambda item_id: items.cancel(tx, item_id, actor=call.actor, reason=why))

    return act(request, call, form, verb, back=f"/plans/{plan}")


def decide(request: Request, call: Call, plan: str, form: Form, verb: Callable[..., object]) -> Response:
    """Take one decision about the items, with the note of the form."""

    def decided(tx: Connection) -> Left:
        note = form.text("note").strip()
        return each(tx, ticked(form), lambda item_id: verb(tx, item_id, actor=call.actor, note=note))

    return act(request, call, form, decided, back=f"/plans/{plan}")


@router.post("/retry")
def retry(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Let the items run again."""
    return decide(request, call, plan, form, decision.retry)


@router.post("/skip")
def skip(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Settle the items as skipped."""
    return decide(request, call, plan, form, decision.skip)


@router.post("/resolve")
def resolve(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Settle the items as resolved by hand."""
    return decide(request, call, plan, form, decision.resolve)
