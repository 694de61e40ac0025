"""The page of schedules: when each ticks, what it adds where, and the forms to make, pause, resume, remove and run one now."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Path, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import cron_words, given, known_tasks, page
from app.act import Place, act, page_at
from app.api_call import Call, Calling
from app.api_items import may_run
from app.form import Fields, Form
from app.page import Refusal
from app.typed import typed
from ordering import schedule, schedule_now, tasks, views
from ordering.errors import Invalid
from ordering.model import Missed
from ordering.schedule import NewSchedule

router = APIRouter(include_in_schema=False)
PLANS = 500  # to choose from


@router.get("/schedules")
def list_(request: Request, call: Calling) -> Response:
    """Every schedule by name."""
    return show(request, call)


@page_at("/schedules")
def refused(request: Request, call: Call, at: Place, refusal: Refusal) -> Response:
    """The page after a refusal."""
    return show(request, call, refusal=refusal, here=at.address)


def show(request: Request, call: Call, *, refusal: Refusal | None = None, here: str | None = None) -> Response:
    """The page, or a refused form of it with what was typed."""

    def read(tx: Connection) -> dict[str, Any]:
        return {
            "schedules": schedule.list_(tx),
            "last": schedule_now.last_items(tx),
            "plans": [each.name for each in views.page(tx, limit=PLANS)[0]],
            "tasks": sorted({*(each.name for each in tasks.offered(tx)), *known_tasks.BUILT_IN}),
        }

    return page.render(
        request,
        call,
        "schedules.html",
        refusal.status if refusal else 200,
        here=here,
        refusal=refusal,
        form=typed(refusal),
        missed=list(Missed),
        in_words=cron_words.in_words,
        **call.read(read),
    )


def _new(form: Form) -> NewSchedule:
    args, kwargs = given.arguments("args", form.given("args"))
    return NewSchedule(
        name=form.text("name").strip(),
        plan=form.text("plan").strip(),
        cron=form.text("cron").strip(),
        task=form.text("task").strip(),
        args=args,
        kwargs=kwargs,
        title=form.text("title"),
        kind=form.text("kind").strip(),
        timezone=form.given("timezone") or "UTC",
        missed=form.one_of("missed", Missed) or Missed.ONE,
    )


@router.post("/schedules")
def create(request: Request, call: Calling, form: Fields) -> Response:
    """Make a schedule."""

    def verb(tx: Connection) -> None:
        new = _new(form)
        may_run(call, [new.task])
        known_tasks.require(tx, [new.task])
        schedule.create(tx, new, actor=call.actor)

    return act(request, call, form, verb, back="/schedules")


@router.post("/schedules/{name}/{verb}")
def change(request: Request, call: Calling, form: Fields, name: str, verb: str = Path(pattern="^(pause|resume|remove|now)$")) -> Response:
    """Pause, resume or remove a schedule, or add its item now."""

    def run(tx: Connection) -> None:
        reason = form.text("reason")
        match verb:
            case "pause":
                schedule.pause(tx, name, actor=call.actor, reason=reason)
            case "resume":
                schedule.resume(tx, name, actor=call.actor, reason=reason)
            case "remove":
                if not form.flag("sure"):
                    raise Invalid("sure", "is not ticked; tick it to say that the schedule shall be removed.")
                schedule.remove(tx, name, actor=call.actor, reason=reason)
            case _:
                may_run(call, [schedule.get(tx, name).task])
                schedule_now.add_now(tx, name, actor=call.actor)

    return act(request, call, form, run, back="/schedules")
