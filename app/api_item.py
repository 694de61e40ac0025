"""One item over HTTP: show, edit, move, postpone, cancel, and the three decisions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from sqlalchemy import Connection

from app import given, known_tasks
from app.api_body import body_of, takes
from app.api_call import Call, Calling, Digits, written
from app.api_docs import problems
from app.api_items import may_run
from app.schemas import BIGGEST_ID, EditBody, ItemEditBody, MoveBody, NoteBody, PostponeBody, ReasonBody, RetryBody
from ordering import clock, decision, history, items, move
from ordering.errors import Invalid
from ordering.history import History, OutputView
from ordering.model import Item

router = APIRouter(prefix="/api/items/{item}", tags=["items"])
ItemId = Annotated[int, Digits, Path(ge=1, le=BIGGEST_ID, description="The item's id.")]


@router.get("", summary="Show an item", response_model=History, responses=problems(404, 422))
def show(call: Calling, item: ItemId) -> Response:
    """Arguments, result, attempts with what they printed, and the trail."""
    return written(call.read(lambda tx: history.history(tx, item)))


@router.patch(
    "",
    summary="Edit an item",
    response_model=Item,
    responses=problems(404, 409, 422),
    openapi_extra=takes(
        ItemEditBody,
        {"title": "Run the tests again", "args": {"command": ["make", "check"]}},
        {"not_before": "2030-01-31T09:00:00Z"},
    ),
)
def edit(call: Calling, item: ItemId, body: Annotated[ItemEditBody, Depends(body_of(ItemEditBody))]) -> Response:
    """Only what has not started: waiting, postponed or dispatched."""
    change = replace(change_of(body), not_before=body.not_before)
    if change == items.Edit():
        raise Invalid("body", "changes nothing; give at least one field.")

    def verb(tx: Connection) -> Item:
        may_edit(call, tx, item, change)
        return items.edit(tx, item, change, actor=call.actor)

    return call.write(verb)


def change_of(body: EditBody) -> items.Edit:
    """The change that the body asks for."""
    return items.Edit(
        task=body.task,
        args=None if body.args is None else body.args if isinstance(body.args, list) else [],
        kwargs=None if body.args is None else body.args if isinstance(body.args, dict) else {},
        title=body.title,
        kind=body.kind,
        on_interrupt=body.on_interrupt,
        max_attempts=body.max_attempts,
    )


def may_edit(call: Call, tx: Connection, item: int, change: items.Edit) -> None:
    """Raise Refused (403) if the item is or becomes a command that the caller may not let run; UnknownTask, UnknownItem.

    The item is held: nobody else makes a command of it behind the look at its task.
    """
    may_run(call, [items.hold(tx, item).item.task, change.task])
    if change.task is not None:
        known_tasks.require(tx, [change.task])


@router.get("/output", summary="Show what an item printed", response_model=OutputView, responses=problems(404, 422))
def output(
    call: Calling,
    item: ItemId,
    attempt: Annotated[int | None, Digits, Query(ge=1, le=2**31 - 1, description="Which try; the latest if left out.")] = None,
) -> Response:
    """The beginning and the end of it, also while it runs. `left_out`: how many bytes between the two were not kept."""
    return written(call.read(lambda tx: history.output(tx, item, attempt)))


@router.post(
    "/move",
    summary="Move an item",
    response_model=Item,
    responses=problems(404, 409, 422),
    openapi_extra=takes(MoveBody, {"after": 7, "seen": 8}, {"first": True}),
)
def move_(call: Calling, item: ItemId, body: Annotated[MoveBody, Depends(body_of(MoveBody))]) -> Response:
    """With `seen`, refused with the fresh order if another item stands on the other side of the gap by now."""
    to = given.place(first=body.first, last=body.last, after=body.after, before=body.before)
    if to is None:
        raise Invalid("place", "is missing; give one of first, last, after and before.")
    return call.write(lambda tx: move.move(tx, item, to, actor=call.actor, seen=body.seen))


@router.post(
    "/postpone",
    summary="Postpone an item",
    response_model=Item,
    responses=problems(404, 409, 422),
    openapi_extra=takes(PostponeBody, {"delay": 7200, "reason": "the mirror is down"}, {"until": "2030-01-31T09:00:00Z"}),
)
def postpone(call: Calling, item: ItemId, body: Annotated[PostponeBody, Depends(body_of(PostponeBody))]) -> Response:
    """It leaves the line until its time comes, and then stands at its old position."""
    if (body.until is None) == (body.delay is None):
        raise Invalid("until", "or delay must be given, one of them.")

    def verb(tx: Connection) -> Item:
        until = body.until or clock.now(tx) + (body.delay or timedelta(0))
        return items.postpone(tx, item, until, actor=call.actor, reason=body.reason)

    return call.write(verb)


@router.post(
    "/cancel",
    summary="Cancel an item",
    response_model=Item,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ReasonBody, {"reason": "not needed any more"}, required=False),
)
def cancel(call: Calling, item: ItemId, body: Annotated[ReasonBody, Depends(body_of(ReasonBody))]) -> Response:
    """What has not ended is settled; a running body is stopped."""
    return call.write(lambda tx: items.cancel(tx, item, actor=call.actor, reason=body.reason))


@router.post(
    "/retry",
    summary="Let a failed or interrupted item run again",
    response_model=Item,
    responses=problems(404, 409, 422),
    openapi_extra=takes(RetryBody, {"note": "the disk was full"}, {"change": {"args": {"command": ["make", "check"]}}}, required=False),
)
def retry(call: Calling, item: ItemId, body: Annotated[RetryBody, Depends(body_of(RetryBody))]) -> Response:
    """At its place, with a fresh allowance of tries, edited first if `change` is given."""
    change = None if body.change is None else change_of(body.change)

    def verb(tx: Connection) -> Item:
        if change is not None:
            may_edit(call, tx, item, change)
        return decision.retry(tx, item, actor=call.actor, note=body.note, change=change)

    return call.write(verb)


@router.post(
    "/skip",
    summary="Skip a failed or interrupted item",
    response_model=Item,
    responses=problems(404, 409, 422),
    openapi_extra=takes(NoteBody, {"note": "obsolete"}, required=False),
)
def skip(call: Calling, item: ItemId, body: Annotated[NoteBody, Depends(body_of(NoteBody))]) -> Response:
    """It is not needed any more."""
    return call.write(lambda tx: decision.skip(tx, item, actor=call.actor, note=body.note))


@router.post(
    "/resolve",
    summary="Resolve a failed or interrupted item",
    response_model=Item,
    responses=problems(404, 409, 422),
    openapi_extra=takes(NoteBody, {"note": "ran it by hand"}),
)
def resolve(call: Calling, item: ItemId, body: Annotated[NoteBody, Depends(body_of(NoteBody))]) -> Response:
    """It was done in another way; `note` says how."""
    return call.write(lambda tx: decision.resolve(tx, item, actor=call.actor, note=body.note))
