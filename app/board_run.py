"""What a person does with a plan's run: start it, change what it does at a failure, pause it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app.act import act
from app.api_call import Calling
from app.api_plans import PlanName
from app.form import Fields
from ordering import plan_edit, plans
from ordering.errors import Invalid
from ordering.model import OnFailure

router = APIRouter(prefix="/plans/{plan}", include_in_schema=False)


@router.post("/start")
def start(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Begin a run, with the policy that was chosen."""
    return act(
        request,
        call,
        form,
        lambda tx: plans.start(tx, plan, actor=call.actor, on_failure=form.one_of("on_failure", OnFailure)),
        back=f"/plans/{plan}",
    )


@router.post("/policy")
def policy(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Give the open run another policy."""

    def verb(tx: Connection) -> None:
        chosen = form.one_of("on_failure", OnFailure)
        if chosen is None:
            raise Invalid("on_failure", "is missing; choose halt or continue.")
        plan_edit.change_policy(tx, plan, chosen, actor=call.actor)

    return act(request, call, form, verb, back=f"/plans/{plan}")


@router.post("/pause")
def pause(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """End the run: what is out goes on to its end."""
    return act(
        request,
        call,
        form,
        lambda tx: plans.pause(tx, plan, actor=call.actor, reason=form.text("reason").strip()),
        back=f"/plans/{plan}",
    )
