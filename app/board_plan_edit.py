"""The dialog of a plan's settings: what they are, as people write them, and the form that changes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app.act import act
from app.api_call import Calling
from app.api_plans import PlanName
from app.form import Fields, Form
from app.given import duration
from app.lasting import lasting
from ordering import plan_edit, plans, rate
from ordering.errors import Invalid
from ordering.model import OnFailure, OnInterrupt

router = APIRouter(prefix="/plans/{plan}", include_in_schema=False)


def _policy(form: Form, _: str) -> OnFailure:
    chosen = form.one_of("on_failure", OnFailure)
    if chosen is None:
        raise Invalid("on_failure", "is missing; choose halt or continue.")
    return chosen


def _concurrency(form: Form, _: str) -> int:
    given = form.number("concurrency", 2, plans.MOST)
    if given is None:
        raise Invalid("concurrency", "is missing; write how many items may be out.")
    return given


#: What each field means. An empty one is no title, no limit, or what the task says.
READ: Mapping[str, Callable[[Form, str], Any]] = {
    "title": lambda _, written: written,
    "concurrency": _concurrency,
    "on_failure": _policy,
    "on_interrupt": lambda form, _: form.one_of("on_interrupt", OnInterrupt),
    "max_attempts": lambda form, _: form.number("max_attempts", 1, 1000),
    "autostart": lambda form, _: form.flag("autostart"),
    "stop_grace": lambda _, written: duration("stop_grace", written),
    "keep": lambda _, written: duration("keep", written),
    "rate": lambda _, written: rate.parse(written) if written else None,
}


def written(tx: Connection, plan_id: int) -> dict[str, str]:
    """The settings of the plan with this id, each as the form has it."""
    found = plan_edit.settings(tx, plan_id)
    return {
        "title": found["title"],
        "concurrency": str(found["concurrency"]),
        "on_failure": found["on_failure"],
        "on_interrupt": found["on_interrupt"] or "",
        "max_attempts": str(found["max_attempts"] or ""),
        "autostart": "on" if found["autostart"] else "",
        "stop_grace": lasting(found["stop_grace"]),
        "keep": lasting(found["keep"]),
        "rate": "" if found["rate"] is None else rate.shown(found["rate"]),
    }


@router.post("/edit")
def edit(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Change the settings that the form says otherwise than they were when it was opened."""

    def verb(tx: Connection) -> None:
        change = {name: read(form, said) for name, read in READ.items() if (said := form.edited(name)) is not None}
        plan_edit.edit(tx, plans.lock_by_name(tx, plan), change, actor=call.actor)

    return act(request, call, form, verb, back=f"/plans/{plan}")
