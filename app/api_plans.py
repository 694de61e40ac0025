"""Plans over HTTP: list, create, show, start, pause."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BaseModel
from sqlalchemy import Connection

from app.api_body import body_of, takes
from app.api_call import PAGE, Calling, Cursor, Limit, written
from app.api_docs import problems
from app.schemas import PlanBody, PlanEditBody, ReasonBody, StartBody
from ordering import plan_edit, plans, views
from ordering.errors import Invalid, UnknownPlan
from ordering.text import checked
from ordering.views import PlanView

router = APIRouter(prefix="/api/plans", tags=["plans"])


class PlanPage(BaseModel):
    """Plans by name; `next` is the cursor of the following page, or null at the end."""

    items: list[PlanView]
    next: str | None


class RunStarted(BaseModel):
    """The plan's run; `opened`: whether this call began it."""

    id: int
    on_failure: str
    opened: bool


def named(plan: Annotated[str, Path(description="The plan's name.")]) -> str:
    """The name in the address. Raises UnknownPlan if no plan can have it."""
    if not plans.NAME.fullmatch(plan):
        raise UnknownPlan(plan[:80])
    return plan


PlanName = Annotated[str, Depends(named)]
Text = Annotated[str | None, Query(max_length=200, description="Only what holds this text, in any case.")]


def searched(text: str | None) -> str | None:
    """The text to look for. Raises Invalid if Postgres could not be asked for it."""
    return None if text is None else checked("text", text, 200)


@router.get("", summary="List the plans", response_model=PlanPage, responses=problems(422))
def list_(call: Calling, limit: Limit = PAGE, cursor: Cursor = None, text: Text = None) -> Response:
    """By name, each with its status, its counts by state and its head."""
    after, containing = checked("cursor", cursor or "", 200), searched(text)
    found, following = call.read(lambda tx: views.page(tx, limit=limit, after=after, text=containing))
    return written({"items": found, "next": following})


@router.post(
    "",
    summary="Create a plan",
    status_code=201,
    response_model=PlanView,
    responses=problems(409, 422),
    openapi_extra=takes(PlanBody, {"name": "nightly", "title": "Every night"}, {"name": "mails", "concurrency": 8, "max_attempts": 5}),
)
def create(call: Calling, body: Annotated[PlanBody, Depends(body_of(PlanBody))]) -> Response:
    """A plan is a named, ordered list of items. A stream (concurrency above 1) runs from the start."""
    settings = {name: getattr(body, name) for name in type(body).model_fields if name != "name"}

    def verb(tx: Connection) -> PlanView:
        plans.create(tx, body.name, actor=call.actor, **settings)
        return views.plan(tx, body.name)

    return call.write(verb, 201)


@router.get("/{plan}", summary="Show a plan", response_model=PlanView, responses=problems(404))
def show(call: Calling, plan: PlanName) -> Response:
    """Its settings, its latest run, its counts by state and its head."""
    return written(call.read(lambda tx: views.plan(tx, plan)))


@router.patch(
    "/{plan}",
    summary="Edit a plan",
    response_model=PlanView,
    responses=problems(404, 409, 422),
    openapi_extra=takes(PlanEditBody, {"title": "Every night", "on_failure": "continue"}, {"rate": "100/m", "concurrency": 16}),
)
def edit(call: Calling, plan: PlanName, body: Annotated[PlanEditBody, Depends(body_of(PlanEditBody))]) -> Response:
    """Its settings; its name stays, and whether it is a serial plan or a stream."""
    change = {name: getattr(body, name) for name in body.model_fields_set}
    if not change:
        raise Invalid("body", "changes nothing; give at least one field.")

    def verb(tx: Connection) -> PlanView:
        plan_edit.edit(tx, plans.lock_by_name(tx, plan), change, actor=call.actor)
        return views.plan(tx, plan)

    return call.write(verb)


@router.post(
    "/{plan}/start",
    summary="Start a run",
    response_model=RunStarted,
    responses=problems(404, 409, 422),
    openapi_extra=takes(StartBody, {"on_failure": "continue"}, required=False),
)
def start(call: Calling, plan: PlanName, body: Annotated[StartBody, Depends(body_of(StartBody))]) -> Response:
    """Refused while a serial plan has failed or interrupted items; on a running plan only the policy changes."""
    return call.write(lambda tx: plans.start(tx, plan, actor=call.actor, on_failure=body.on_failure))


@router.post(
    "/{plan}/pause",
    summary="Pause a plan",
    response_model=PlanView,
    responses=problems(404, 409, 422),
    openapi_extra=takes(ReasonBody, {"reason": "the mirror is down"}, required=False),
)
def pause(call: Calling, plan: PlanName, body: Annotated[ReasonBody, Depends(body_of(ReasonBody))]) -> Response:
    """What is out goes on to its end; nothing more is fed."""

    def verb(tx: Connection) -> PlanView:
        plans.pause(tx, plan, actor=call.actor, reason=body.reason)
        return views.plan(tx, plan)

    return call.write(verb)
