"""Schedules over HTTP: list, create, show, edit, pause, resume, remove, and one item more by hand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app import known_tasks
from app.api_body import body_of, takes
from app.api_call import PAGE, Call, Calling, Cursor, Limit, written
from app.api_docs import problems
from app.api_items import may_run
from app.api_plans import Text, named, searched
from app.schemas import ReasonBody, ScheduleBody, ScheduleEditBody
from ordering import plans, schedule, schedule_now
from ordering.add import Added
from ordering.errors import Invalid, UnknownSchedule
from ordering.schedule import NewSchedule, Schedule
from ordering.text import checked

router = APIRouter(prefix="/api/schedules", tags=["schedules"])


class SchedulePage(BaseModel):
    """Schedules by name; `next` is the cursor of the following page, or null at the end."""

    items: list[Schedule]
    next: str | None


def known(name: Annotated[str, Path(alias="schedule", description="The schedule's name.")]) -> str:
    """The name in the address. Raises UnknownSchedule if no schedule can have it."""
    if not plans.NAME.fullmatch(name):
        raise UnknownSchedule(name[:80])
    return name


Name = Annotated[str, Depends(known)]


@router.get("", summary="List schedules", response_model=SchedulePage, responses=problems(404, 422))
def list_(
    call: Calling,
    plan: Annotated[str | None, Query(description="Only those that add to this plan.")] = None,
    text: Text = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response:
    """By name, each with its coming ticks. `text` is looked for in name, title and task."""
    after, containing = checked("cursor", cursor or "", 200), searched(text)

    only = None if plan is None else named(plan)

    def verb(tx: Connection) -> tuple[list[Schedule], str | None]:
        if only is not None:
            plans.get(tx, only)
        return schedule.page(tx, limit=limit, after=after, plan=only, containing=containing)

    found, following = call.read(verb)
    return written({"items": found, "next": following})


@router.post(
    "",
    summary="Create a schedule",
    status_code=201,
    response_model=Schedule,
    responses=problems(404, 409, 422),
    openapi_extra=takes(
        ScheduleBody,
        {
            "name": "backup",
            "plan": "nightly",
            "cron": "30 2 * * *",
            "timezone": "Europe/Berlin",
            "task": "http",
            "args": {"url": "https://example.org/hook"},
        },
    ),
)
def create(call: Calling, body: Annotated[ScheduleBody, Depends(body_of(ScheduleBody))]) -> Response:
    """It adds an item to the plan at each tick. One of the task `shell` needs the role admin."""
    may_run(call, [body.task])
    new = NewSchedule(**_fields(body, type(body).model_fields))

    def verb(tx: Connection) -> Schedule:
        known_tasks.require(tx, [body.task])
        return schedule.create(tx, new, actor=call.actor)

    return call.write(verb, 201)


@router.get("/{schedule}", summary="Show a schedule", response_model=Schedule, responses=problems(404))
def show(call: Calling, name: Name) -> Response:
    """With its coming ticks."""
    return written(call.read(lambda tx: schedule.get(tx, name)))


@router.patch(
    "/{schedule}",
    summary="Edit a schedule",
    response_model=Schedule,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ScheduleEditBody, {"cron": "0 3 * * 1-5", "missed": "skip"}, {"args": {"command": ["make", "backup"]}}),
)
def edit(call: Calling, name: Name, body: Annotated[ScheduleEditBody, Depends(body_of(ScheduleEditBody))]) -> Response:
    """Its name stays, and so do the items that it has added. One that the catalogue has is again as it says there at the next start."""
    change = _fields(body, body.model_fields_set)
    if not change:
        raise Invalid("body", "changes nothing; give at least one field.")
    return call.write(lambda tx: edit_for(call, tx, name, change))


def edit_for(call: Call, tx: Connection, name: str, change: dict[str, Any]) -> Schedule:
    """Edit it as the caller asks. Raises Refused (403) if it is or becomes a command that the caller may not let run; UnknownTask.

    Locked first: nobody else makes a command of it behind the look at its task.
    """
    may_run(call, [schedule.lock(tx, name).task, change.get("task")])
    if "task" in change:
        known_tasks.require(tx, [change["task"]])
    return schedule.edit(tx, name, change, actor=call.actor)


def add_for(call: Call, tx: Connection, name: str) -> Added:
    """Add its item now. Raises Refused (403) if that is a command that the caller may not let run; UnknownSchedule."""
    found = schedule.get(tx, name)
    may_run(call, [found.task])
    return schedule_now.add_now(tx, found, actor=call.actor)


def _fields(body: ScheduleBody | ScheduleEditBody, named: Iterable[str]) -> dict[str, Any]:
    fields = {each: getattr(body, each) for each in named}
    if "args" in fields:
        args = fields["args"]
        fields |= {"args": args, "kwargs": {}} if isinstance(args, list) else {"args": [], "kwargs": args}
    return fields


@router.delete("/{schedule}", summary="Remove a schedule", response_model=Schedule, responses=problems(404, 409, 422))
def remove(call: Calling, name: Name, reason: Annotated[str, Query(max_length=2000, description="Why, for the trail.")] = "") -> Response:
    """What it was. The items that it added stay; one that the catalogue has is made again at the next start of the platform."""
    return call.write(lambda tx: schedule.remove(tx, name, actor=call.actor, reason=checked("reason", reason, 2000)))


ON_ONE = problems(404, 409, 422)
REASON = takes(ReasonBody, {"reason": "the disk is full"}, required=False)


@router.post("/{schedule}/pause", summary="Pause a schedule", response_model=Schedule, responses=ON_ONE, openapi_extra=REASON)
def pause(call: Calling, name: Name, body: Annotated[ReasonBody, Depends(body_of(ReasonBody))]) -> Response:
    """It ticks no more until it is resumed."""
    return call.write(lambda tx: schedule.pause(tx, name, actor=call.actor, reason=body.reason))


@router.post("/{schedule}/resume", summary="Resume a schedule", response_model=Schedule, responses=ON_ONE, openapi_extra=REASON)
def resume(call: Calling, name: Name, body: Annotated[ReasonBody, Depends(body_of(ReasonBody))]) -> Response:
    """It ticks again, from now on."""
    return call.write(lambda tx: schedule.resume(tx, name, actor=call.actor, reason=body.reason))


@router.post("/{schedule}/add", summary="Add a schedule's item now", status_code=201, response_model=Added, responses=ON_ONE)
def add(call: Calling, name: Name) -> Response:
    """One more, beside its ticks."""
    return call.write(lambda tx: add_for(call, tx, name), 201)
