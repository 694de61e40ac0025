"""The trail over HTTP: page by page, one event, as a stream of what happens, and taken back."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from pydantic import BaseModel
from sqlalchemy import Connection
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app import api_query
from app.api_body import body_of, takes
from app.api_call import PAGE, Calling, Cursor, Digits, Limit, Server, written
from app.api_docs import problems
from app.api_plans import Text, named, searched
from app.audience import Live
from app.caller import Role
from app.listeners import Listener, parsed
from app.problem import Refused
from app.refusals import CALLER
from app.schemas import BIGGEST_ID, ReasonBody
from app.schemas_bulk import UndoBody
from ordering import plans, trail, undo
from ordering.model import Item
from ordering.text import checked
from ordering.trail import Event

router = APIRouter(prefix="/api/events", tags=["events"])
COMMENT_SECONDS = 15.0  # of silence, after which a line says that the stream lives; whether its caller still may is asked as often


class EventPage(BaseModel):
    """Events, the latest first; `next` is the cursor of the following page, or null at the end."""

    items: list[Event]
    next: str | None


class UndoneItems(BaseModel):
    """The items, in the order in which the events were undone."""

    items: list[Item]


EventId = Annotated[int, Digits, Path(ge=1, le=BIGGEST_ID, description="The event's id.")]


@router.get("", summary="List events", response_model=EventPage, responses=problems(404, 422))
def list_(
    call: Calling,
    plan: Annotated[str | None, Query(description="Only of this plan.")] = None,
    item: Annotated[int | None, Digits, Query(ge=1, le=BIGGEST_ID, description="Only of the item with this id.")] = None,
    actor: Annotated[str | None, Query(max_length=200, description="Only what this actor did.")] = None,
    action: Annotated[str | None, Query(max_length=40, description="Only this verb, for example move.")] = None,
    text: Text = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response:
    """The trail: who did what, before, after and why, the latest first; long values are cut.

    `text` is looked for in actor, action and reason. Of a filtered list a page may be short and not the last: go on while there is
    a `next`.
    """
    wanted = {name: None if given is None else checked(name, given, 200) for name, given in (("actor", actor), ("action", action))}
    containing = searched(text)
    before = None if cursor is None else trail.parsed(cursor)

    def verb(tx: Connection) -> trail.Page:
        plan_id = None if plan is None else plans.get(tx, named(plan)).id
        return trail.events(tx, limit=limit, before=before, plan_id=plan_id, item=item, containing=containing, **wanted)

    found = call.read(verb)
    return written({"items": found.events, "next": None if found.next is None else str(found.next)})


def live_of(request: Request) -> Live:
    """The listeners of this server."""
    live: Live = request.app.state.live
    return live


STREAM: dict[int | str, dict[str, Any]] = {200: {"description": "A stream of events", "content": {"text/event-stream": {}}}}


@router.get("/stream", summary="Listen to what happens", response_class=Response, responses={**STREAM, **problems(422)})
async def stream(
    request: Request,
    live: Annotated[Live, Depends(live_of)],
    last_event_id: Annotated[str | None, Header(description="The place where an earlier stream was left; browsers send it.")] = None,
    after: Annotated[str | None, Query(max_length=100, description="The same, for a first stream.")] = None,
) -> Response:
    """Server-sent events: `trail` (a line of the trail), `changed` (plans that a machine changed), `signals`, `reset`, `away`, `back`.

    `id` is a place to return to, and nobody's business. An event may come twice. After `reset` fetch everything anew.
    """
    server: Server = request.app.state.server
    await admitted(server, request)
    api_query.check(request)
    listener = live.join(parsed(last_event_id or after))
    return _Stream(live, listener, _messages(server, request, listener))


async def admitted(server: Server, request: Request) -> None:
    """Raise Refused unless the caller may look."""
    caller = await to_thread.run_sync(server.known, request)
    request.scope[CALLER] = caller.name
    caller.require(Role.VIEW, "This")


async def _messages(server: Server, request: Request, listener: Listener) -> AsyncIterator[bytes]:
    asked = time.monotonic()
    yield b": here\n\n"
    while not listener.closed:
        messages = await listener.take(COMMENT_SECONDS)
        if time.monotonic() - asked >= COMMENT_SECONDS:
            asked = time.monotonic()
            try:
                await admitted(server, request)
            except Refused:
                return  # a token that was taken back listens no more
        if not listener.closed:
            yield messages or b": here\n\n"


class _Stream(StreamingResponse):
    """A stream whose listener leaves with it, however it ends."""

    def __init__(self, live: Live, listener: Listener, messages: AsyncIterator[bytes]) -> None:
        super().__init__(messages, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._live, self._listener = live, listener

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._live.leave(self._listener)


@router.get("/{event}", summary="Show an event", response_model=Event, responses=problems(404, 422))
def show(call: Calling, event: EventId) -> Response:
    """Whole. `undoable` says whether it can be undone now."""
    return written(call.read(lambda tx: trail.event(tx, event)))


@router.post(
    "/{event}/undo",
    summary="Undo a move, a postponement or a cancel",
    response_model=Item,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ReasonBody, {"reason": "slipped"}, required=False),
)
def undo_(call: Calling, event: EventId, body: Annotated[ReasonBody, Depends(body_of(ReasonBody))]) -> Response:
    """While it has had no effect yet. The item goes back to its old place; the undo is an event of its own."""
    return call.write(lambda tx: undo.undo(tx, event, actor=call.actor, reason=body.reason))


@router.post(
    "/undo",
    summary="Undo several",
    response_model=UndoneItems,
    responses=problems(404, 409, 422),
    openapi_extra=takes(UndoBody, {"events": [4127, 4128], "reason": "slipped"}),
)
def undo_many(call: Calling, body: Annotated[UndoBody, Depends(body_of(UndoBody))]) -> Response:
    """The latest first; all of them, or none."""
    return call.write(lambda tx: undo.undo_many(tx, body.events, actor=call.actor, reason=body.reason), body=lambda done: {"items": done})
