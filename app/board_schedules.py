"""The page of schedules: when each ticks, what it adds where, and the forms to make, edit, pause, resume, remove and run one now."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import cron_words, given, known_tasks, page, plan_asks
from app.act import Place, act, page_at
from app.api_call import Call, Calling
from app.api_items import may_run
from app.caller import Role
from app.form import Fields, Form
from app.page import Refusal
from app.typed import typed
from ordering import schedule, schedule_now, tasks, views
from ordering.errors import Invalid
from ordering.model import Missed
from ordering.schedule import NewSchedule, Schedule

router = APIRouter(include_in_schema=False)
PLANS = 500  # to choose from


@router.get("/schedules")
def list_(
    request: Request,
    call: Calling,
    ask: Annotated[str, Query(max_length=20)] = "",
    schedule: Annotated[str, Query(max_length=63)] = "",
) -> Response:
    """Every schedule by name; `ask` is the dialog that is open, about the one that is named."""
    return show(request, call, edited=schedule if ask == "edit" else "")


@page_at("/schedules")
def refused(request: Request, call: Call, at: Place, refusal: Refusal) -> Response:
    """The page after a refusal."""
    edited = refusal.form.text("schedule") if refusal.form.text("ask") == "edit" else ""
    return show(request, call, edited=edited, refusal=refusal, here=at.address)


def show(request: Request, call: Call, *, edited: str = "", refusal: Refusal | None = None, here: str | None = None) -> Response:
    """The page, or a refused form of it with what was typed. `edited`: the schedule whose dialog is open."""

    may = call.caller.role >= Role.OPERATE

    def read(tx: Connection) -> dict[str, Any]:
        found = schedule.list_(tx)
        return {
            "schedules": found,
            "edited": next((each for each in found if each.name == edited), None) if may else None,
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
        written=plan_asks.written,
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


def _change(old: Schedule, form: Form) -> dict[str, Any]:
    """What the form says otherwise than it did when it was opened. Raises Invalid."""
    change: dict[str, Any] = {}
    for name in ("plan", "cron", "task", "title", "kind", "timezone"):
        if (said := form.edited(name)) is not None:
            change[name] = said or ("UTC" if name == "timezone" else "")
    if form.edited("missed") is not None:
        change["missed"] = form.one_of("missed", Missed) or Missed.ONE
    if form.edited("args") is not None:
        args, kwargs = given.arguments("args", form.given("args"))
        if old.args and old.kwargs and set(kwargs) == {"args", "kwargs"}:  # as such a schedule's are shown
            args, kwargs = kwargs["args"], kwargs["kwargs"]
        change |= {"args": args, "kwargs": kwargs}
    return change


@router.post("/schedules/{name}/edit")
def edit(request: Request, call: Calling, form: Fields, name: str) -> Response:
    """Change what a schedule adds, where and when."""

    def verb(tx: Connection) -> None:
        old = schedule.get(tx, name)
        change = _change(old, form)
        if change:
            may_run(call, [old.task, change.get("task", old.task)])
            known_tasks.require(tx, [change.get("task", old.task)])
            schedule.edit(tx, name, change, actor=call.actor)

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
