"""The items of a plan over HTTP: list them page by page, add one or many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app import given, known_tasks
from app.api_body import one_or_many, takes
from app.api_call import PAGE, Call, Calling, Cursor, Digits, Limit, written
from app.api_docs import problems
from app.api_plans import PlanName, Text, searched
from app.caller import Role
from app.problem import Refused
from app.schemas import BIGGEST_ID, ItemBody
from ordering import add, items, listing, plans
from ordering.add import Added
from ordering.lines import ItemLine
from ordering.model import Item, Last, Place
from ordering.text import checked

router = APIRouter(prefix="/api/plans/{plan}/items", tags=["items"])
MOST = 10_000  # items of one call


class ItemPage(BaseModel):
    """Items in their order; `next` is the cursor of the following page, or null at the end."""

    items: list[ItemLine]
    next: str | None


class AddedItems(BaseModel):
    """In the order of the call; `new` is false where the key was known."""

    items: list[Added]


@router.get("", summary="List a plan's items", response_model=ItemPage, responses=problems(404, 422))
def list_(
    call: Calling,
    plan: PlanName,
    state: Annotated[str, Query(description=f"One of {', '.join(listing.CHOICES)}.")] = "unsettled",
    kind: Annotated[str | None, Query(max_length=items.KIND_LIMIT, description="Only this kind.")] = None,
    text: Text = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response:
    """What is not settled comes in the order of the line, what is settled latest first.

    `text` is looked for in title, task and key. Of a filtered list a page may be short and not the last: go on while there is a `next`.
    """
    wanted = None if kind is None else checked("kind", kind, items.KIND_LIMIT)
    containing = searched(text)

    def verb(tx: Connection) -> Any:
        found = plans.get(tx, plan)
        return listing.items(tx, found.id, state=state, kind=wanted, containing=containing, limit=limit, after=cursor)

    return written(call.read(verb))


NeighbourId = Annotated[int | None, Digits, Query(ge=1, le=BIGGEST_ID)]


def place(
    first: Annotated[bool, Query(description="In front of everything that waits.")] = False,
    last: Annotated[bool, Query(description="Behind everything, as when nothing is said.")] = False,
    after: NeighbourId = None,
    before: NeighbourId = None,
) -> Place:
    """The place that the address names, else the end. Raises Invalid if it names several."""
    return given.place(first=first, last=last, after=after, before=before) or Last()


@router.post(
    "",
    summary="Add an item, or many",
    status_code=201,
    response_model=Item | AddedItems,
    responses={200: {"description": "All of it was there already"}, **problems(404, 409, 422)},
    openapi_extra=takes(
        ItemBody,
        {"task": "shell", "args": {"command": ["make", "test"]}, "title": "Run the tests", "key": "tests-2030-01-31"},
        [{"task": "http", "args": {"url": "https://example.org/hook"}, "delay": 900}],
        many=True,
    ),
)
def add_(
    call: Calling,
    plan: PlanName,
    to: Annotated[Place, Depends(place)],
    body: Annotated[ItemBody | list[ItemBody], Depends(one_or_many(ItemBody))],
) -> Response:
    """One item is answered whole, a list with the ids in its order; all of a list are added, or none.

    201 when something was added, 200 when every key was known.
    """
    many = body if isinstance(body, list) else [body]
    if len(many) > MOST:
        raise Refused(413, f"The list has {len(many)} items; send at most {MOST} at a time.")
    may_run(call, (each.task for each in many))

    def one(tx: Connection) -> tuple[Item, bool]:
        known_tasks.require(tx, [many[0].task])
        added = add.add(tx, plan, many[0].new(), actor=call.actor, to=to)
        return items.get(tx, added.id), added.new

    def list_of(tx: Connection) -> list[Added]:
        known_tasks.require(tx, (each.task for each in many))
        return add.add_many(tx, plan, (each.new() for each in many), actor=call.actor, to=to)

    if isinstance(body, list):
        return call.write(list_of, lambda done: 201 if any(each.new for each in done) else 200, lambda done: {"items": done})
    return call.write(one, lambda done: 201 if done[1] else 200, lambda done: done[0])


def may_run(call: Call, tasks: Iterable[str | None]) -> None:
    """Raise Refused (403) if one of `tasks` runs commands on the workers and the caller may not let it."""
    if "shell" in tasks:
        if not call.shell:
            raise Refused(403, "RELEVO_SHELL_OVER_HTTP is off: items of the task shell are added and edited on the command line only.")
        call.caller.require(Role.ADMIN, "Adding or editing an item of the task shell")
