"""The page of schedules: when each ticks, what it adds where, and the forms to make, edit, pause, resume, remove and run one now."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import cron_words, given, known_tasks, page, plan_asks
from app.act import Place, act, page_at
from app.api_call import Call, Calling
from app.api_items import may_run
from app.api_schedules import add_for, edit_for
from app.caller import Role
from app.form import Fields, Form
from app.page import Refusal
from app.typed import typed
from ordering import schedule, schedule_now, views
from ordering.errors import Invalid, UnknownSchedule
from ordering.model import Missed
from ordering.schedule import NewSchedule, Schedule
from ordering.text import checked

router = APIRouter(include_in_schema=False)
ROWS = 24  # of one page
PLANS = 500  # that are offered; another one can be written


@router.get("/schedules")
def list_(
    request: Request,
    call: Calling,
    after: Annotated[str, Query(max_length=100)] = "",
    plan: Annotated[str, Query(max_length=100)] = "",
    text: Annotated[str, Query(max_length=200)] = "",
    ask: Annotated[str, Query(max_length=20)] = "",
    schedule: Annotated[str, Query(max_length=63)] = "",
) -> Response:
    """Schedules by name, those of one `plan` or with `text`; `ask` is the dialog that is open, about the one that is named."""
    return show(request, call, after=after, plan=plan, text=text, edited=schedule if ask == "edit" else "")


@page_at("/schedules")
def refused(request: Request, call: Call, at: Place, refusal: Refusal) -> Response:
    """The page after a refusal."""
    edited = refusal.form.text("schedule") if refusal.form.text("ask") == "edit" else ""
    asked = {name: at.query.get(name, "") for name in ("after", "plan", "text")}
    return show(request, call, **asked, edited=edited, refusal=refusal, here=at.address)


def show(
    request: Request,
    call: Call,
    *,
    after: str = "",
    plan: str = "",
    text: str = "",
    edited: str = "",
    refusal: Refusal | None = None,
    here: str | None = None,
) -> Response:
    """The page, or a refused form of it with what was typed. `edited`: the schedule whose dialog is open."""
    begin, only, containing = checked("after", after, 100), checked("plan", plan.strip(), 100), checked("text", text.strip(), 200)
    may = call.caller.role >= Role.OPERATE

    def read(tx: Connection) -> dict[str, Any]:
        found, following = schedule.page(tx, limit=ROWS, after=begin, plan=only or None, containing=containing or None)
        return {
            "schedules": found,
            "next": following,
            "edited": _edited(tx, edited) if may else None,
            "last": schedule_now.last_items(tx, (each.name for each in found)),
            "plans": views.names(tx, limit=PLANS),
            "tasks": sorted(known_tasks.names(tx)),
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
        asked={"after": begin, "plan": only, "text": containing},
        **call.read(read),
    )


def _edited(tx: Connection, name: str) -> Schedule | None:
    with suppress(UnknownSchedule):
        return schedule.get(tx, name)
    return None


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
        old = schedule.lock(tx, name)
        change = _change(old, form)
        if change:
            edit_for(call, tx, name, change)

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
                add_for(call, tx, name)

    return act(request, call, form, run, back="/schedules")
