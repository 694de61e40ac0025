"""Dead letters over HTTP: list them, group them by cause, decide many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app.api_body import body_of, takes
from app.api_call import PAGE, Call, Calling, Cursor, Limit, written
from app.api_docs import problems
from app.api_plans import named
from app.schemas import LettersBody
from ordering import clock, dead, dead_decision
from ordering.dead import Group, Letter
from ordering.dead_decision import Verb
from ordering.errors import Invalid, UnknownGroup
from ordering.refused import RefusedMessage
from ordering.refused import refused as refused_messages

router = APIRouter(prefix="/api/dead-letters", tags=["dead letters"])
BATCH = 2_000  # letters of one call: about 200 ms, in which nobody else can decide them


def stream(plan: Annotated[str | None, Query(description="Only those of this stream.")] = None) -> str | None:
    """The name in the query. Raises UnknownPlan if no plan can have it."""
    return None if plan is None else named(plan)


PlanFilter = Annotated[str | None, Depends(stream)]
GroupFilter = Annotated[str | None, Query(max_length=100, description="Only those of this cause.")]


class LetterPage(BaseModel):
    """Dead letters by plan and place; `next` is the cursor of the following page, or null at the end."""

    items: list[Letter]
    next: str | None


class RefusedPage(BaseModel):
    """Messages that nobody could read or run, the latest first."""

    items: list[RefusedMessage]


class GroupPage(BaseModel):
    """Dead letters by plan and cause, the largest groups first."""

    items: list[Group]


@dataclass(frozen=True)
class Decided:
    """The ids of what this call decided. While `next` is not null, there are more: call again with `cursor` and `until` as given here."""

    items: Sequence[int]
    next: str | None
    until: datetime | None


@router.get("", summary="List dead letters", response_model=LetterPage, responses=problems(404, 409, 422))
def list_(call: Calling, plan: PlanFilter, group: GroupFilter = None, limit: Limit = PAGE, cursor: Cursor = None) -> Response:
    """What failed in a stream and does not run again by itself. An item's whole history is at /api/items/{id}."""
    after = None if cursor is None else dead.Cursor.parse(cursor)
    found = call.read(lambda tx: dead.letters(tx, dead.which(tx, plan=plan, group=group), limit=limit, after=after))
    return written({"items": found.letters, "next": None if found.next is None else str(found.next)})


@router.get("/groups", summary="Group dead letters by cause", response_model=GroupPage, responses=problems(404, 409, 422))
def groups(call: Calling, plan: PlanFilter, group: GroupFilter = None, limit: Limit = PAGE) -> Response:
    """How many died of what, with the latest of each as an example."""
    return written({"items": call.read(lambda tx: dead.groups(tx, dead.which(tx, plan=plan, group=group), limit=limit))})


@router.get("/refused", summary="List refused messages", response_model=RefusedPage, responses=problems(422))
def refused(call: Calling, limit: Limit = PAGE) -> Response:
    """What came from the broker and could not be read, or named an unknown task; such a message is no item."""
    return written({"items": call.read(lambda tx: refused_messages(tx, limit=limit))})


def decide(call: Call, verb: Verb, body: LettersBody) -> Callable[[Connection], Decided]:
    """The verb that decides what `body` names. Raises Invalid."""
    by_id = body.items is not None
    if by_id + (body.plan is not None or body.group is not None) + body.all != 1:
        raise Invalid("items", 'plan and group, or all: give one of them, for example {"items": [1, 2]}.')
    if by_id and (body.cursor is not None or body.until is not None):
        raise Invalid("cursor", "and until do not go with items.")
    if (body.cursor is None) != (body.until is None):
        raise Invalid("until", "and cursor go together; give both as the call before answered them.")
    after = None if body.cursor is None else dead.Cursor.parse(body.cursor)

    def one_batch(tx: Connection) -> Decided:
        if body.items is not None:
            return Decided(dead_decision.decide(tx, verb, body.items, actor=call.actor, note=body.note), None, None)
        chosen, until = dead.which(tx, plan=None if body.plan is None else named(body.plan), group=body.group), body.until or clock.now(tx)
        batch = dead_decision.decide_batch(
            tx, verb, chosen, until=until, after=after, actor=call.actor, note=body.note, limit=BATCH
        )  # fmt: skip
        if body.group is not None and after is None and not batch.done and dead.count(tx, chosen) == 0:
            raise UnknownGroup(body.group)
        return Decided(batch.done, None if batch.next is None else str(batch.next), until)

    return one_batch


EXAMPLES: tuple[dict[str, Any], ...] = ({"items": [7, 9], "note": "the mirror is back"}, {"plan": "mails", "group": "5f0c3a9b12de"})


@router.post(
    "/retry",
    summary="Let dead letters run again",
    response_model=Decided,
    responses=problems(404, 409, 422),
    openapi_extra=takes(LettersBody, *EXAMPLES),
)
def retry(call: Calling, body: Annotated[LettersBody, Depends(body_of(LettersBody))]) -> Response:
    """Each with a fresh allowance of tries. Named by their ids: all or none. With other arguments: POST /api/items/{id}/retry."""
    return call.write(decide(call, Verb.RETRY, body))


@router.post(
    "/skip",
    summary="Skip dead letters",
    response_model=Decided,
    responses=problems(404, 409, 422),
    openapi_extra=takes(LettersBody, *EXAMPLES),
)
def skip(call: Calling, body: Annotated[LettersBody, Depends(body_of(LettersBody))]) -> Response:
    """They are not needed any more."""
    return call.write(decide(call, Verb.SKIP, body))


@router.post(
    "/resolve",
    summary="Resolve dead letters",
    response_model=Decided,
    responses=problems(404, 409, 422),
    openapi_extra=takes(LettersBody, {"plan": "mails", "note": "sent by hand"}),
)
def resolve(call: Calling, body: Annotated[LettersBody, Depends(body_of(LettersBody))]) -> Response:
    """They were done in another way; `note` says how."""
    return call.write(decide(call, Verb.RESOLVE, body))
