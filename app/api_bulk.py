"""Many items of a plan at once over HTTP: move, postpone, cancel, retry, skip, resolve; all of them, or none."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app import given
from app.api_body import body_of, takes
from app.api_call import Call, Calling
from app.api_docs import problems
from app.api_plans import PlanName
from app.schemas_bulk import ManyMoveBody, ManyNoteBody, ManyPostponeBody, ManyReasonBody
from ordering import clock, decision, items, move, place, plans
from ordering.errors import Invalid
from ordering.model import After, Before, Item

router = APIRouter(prefix="/api/plans/{plan}/items", tags=["items"])


class ItemList(BaseModel):
    """The items as they are now, in the order in which they were taken."""

    items: list[Item]


def each(call: Call, plan: str, wanted: list[int], verb: Callable[[Connection, int], Item]) -> Response:
    """Run `verb` for each item of the locked plan, in their order there; the answer. Raises Invalid for one of another plan."""

    def all_of(tx: Connection) -> list[Item]:
        return [verb(tx, item_id) for item_id in chosen(tx, plan, wanted)]

    return call.write(all_of, body=lambda done: {"items": done})


def chosen(tx: Connection, plan: str, wanted: list[int]) -> list[int]:
    """The items in the order in which they stand. Raises UnknownPlan, UnknownItem, Invalid for one of another plan."""
    held = plans.lock_by_name(tx, plan)
    for item_id in wanted:
        if items.get(tx, item_id).plan_id != held.id:
            raise Invalid("items", f"item {item_id} is not of plan {plan!r}; name items of one plan.")
    return place.in_order(tx, list(dict.fromkeys(wanted)))


@router.post(
    "/move",
    summary="Move items",
    response_model=ItemList,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ManyMoveBody, {"items": [12, 14], "after": 7, "seen": 8}, {"items": [12, 14], "first": True}),
)
def move_(call: Calling, plan: PlanName, body: Annotated[ManyMoveBody, Depends(body_of(ManyMoveBody))]) -> Response:
    """To one place, behind each other in the order in which they stand."""
    to = given.place(first=body.first, last=body.last, after=body.after, before=body.before)
    if to is None:
        raise Invalid("place", "is missing; give one of first, last, after and before.")
    if isinstance(to, (After, Before)) and to.item in body.items:
        raise Invalid("items", f"item {to.item} is one of those that move, and the neighbour too; name another neighbour.")

    def verb(tx: Connection) -> list[Item]:
        moved: list[Item] = []
        for item_id in chosen(tx, plan, body.items):
            behind = After(moved[-1].id) if moved else to
            moved.append(move.move(tx, item_id, behind, actor=call.actor, seen=None if moved else body.seen))
        return moved

    return call.write(verb, body=lambda done: {"items": done})


@router.post(
    "/postpone",
    summary="Postpone items",
    response_model=ItemList,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ManyPostponeBody, {"items": [12, 14], "delay": 7200, "reason": "the mirror is down"}),
)
def postpone(call: Calling, plan: PlanName, body: Annotated[ManyPostponeBody, Depends(body_of(ManyPostponeBody))]) -> Response:
    """They leave the line until their time comes, and then stand at their old positions."""
    if (body.until is None) == (body.delay is None):
        raise Invalid("until", "or delay must be given, one of them.")

    def one(tx: Connection, item_id: int) -> Item:
        until = body.until or clock.now(tx) + (body.delay or timedelta(0))
        return items.postpone(tx, item_id, until, actor=call.actor, reason=body.reason)

    return each(call, plan, body.items, one)


@router.post(
    "/cancel",
    summary="Cancel items",
    response_model=ItemList,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ManyReasonBody, {"items": [12, 14], "reason": "not needed any more"}),
)
def cancel(call: Calling, plan: PlanName, body: Annotated[ManyReasonBody, Depends(body_of(ManyReasonBody))]) -> Response:
    """What has not ended is settled; running bodies are stopped."""
    return each(call, plan, body.items, lambda tx, item_id: items.cancel(tx, item_id, actor=call.actor, reason=body.reason))


NOTED = {"items": [12, 14], "note": "the mirror is back"}


@router.post(
    "/retry",
    summary="Let failed and interrupted items run again",
    response_model=ItemList,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ManyNoteBody, NOTED),
)
def retry(call: Calling, plan: PlanName, body: Annotated[ManyNoteBody, Depends(body_of(ManyNoteBody))]) -> Response:
    """At their places, each with a fresh allowance of tries."""
    return each(call, plan, body.items, lambda tx, item_id: decision.retry(tx, item_id, actor=call.actor, note=body.note))


@router.post(
    "/skip",
    summary="Skip failed and interrupted items",
    response_model=ItemList,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ManyNoteBody, NOTED),
)
def skip(call: Calling, plan: PlanName, body: Annotated[ManyNoteBody, Depends(body_of(ManyNoteBody))]) -> Response:
    """They are not needed any more."""
    return each(call, plan, body.items, lambda tx, item_id: decision.skip(tx, item_id, actor=call.actor, note=body.note))


@router.post(
    "/resolve",
    summary="Resolve failed and interrupted items",
    response_model=ItemList,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ManyNoteBody, {"items": [12, 14], "note": "ran them by hand"}),
)
def resolve(call: Calling, plan: PlanName, body: Annotated[ManyNoteBody, Depends(body_of(ManyNoteBody))]) -> Response:
    """They were done in another way; `note` says how."""
    return each(call, plan, body.items, lambda tx, item_id: decision.resolve(tx, item_id, actor=call.actor, note=body.note))
