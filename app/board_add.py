"""What a person puts into a plan: an item, the ticked entries of the catalogue, the repair of what is unresolved."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import entries, given, known_tasks
from app.act import act
from app.api_call import Calling
from app.api_items import may_run
from app.api_plans import PlanName
from app.form import Fields, Form
from app.repair_all import repair_all
from app.run_all import run_all
from ordering import add
from ordering.errors import Invalid
from ordering.model import After, Before, First, Last, NewItem, OnInterrupt, Place

router = APIRouter(prefix="/plans/{plan}", include_in_schema=False)


@router.post("/items")
def add_(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Add an item."""

    def verb(tx: Connection) -> None:
        new = item_of(form)
        may_run(call, [new.task])
        known_tasks.require(tx, [new.task])
        add.add(tx, plan, new, actor=call.actor, to=place(form))

    return act(request, call, form, verb, back=f"/plans/{plan}")


def item_of(form: Form) -> NewItem:
    """The item that the form describes. Raises Invalid naming the field."""
    task = form.text("task").strip()
    if not task:
        raise Invalid("task", "is empty; choose one.")
    args, kwargs = given.arguments("args", form.given("args"))
    delay = form.given("delay")
    return NewItem(
        task,
        args=args,
        kwargs=kwargs,
        title=form.text("title").strip(),
        kind=form.text("kind").strip(),
        key=form.given("key"),
        delay=None if delay is None else given.duration("delay", delay),
        on_interrupt=form.one_of("on_interrupt", OnInterrupt),
        max_attempts=form.number("max_attempts", 1, 1000),
    )


def place(form: Form) -> Place:
    """The place that the form names, else the end. Raises Invalid."""
    where, neighbour = form.text("place", "last"), form.id("neighbour")
    if where in ("before", "after") and neighbour is None:
        raise Invalid("neighbour", "is missing; write the number of the item that it goes next to.")
    match where:
        case "first":
            return First()
        case "before" if neighbour is not None:
            return Before(neighbour)
        case "after" if neighbour is not None:
            return After(neighbour)
        case "last":
            return Last()
        case _:
            raise Invalid("place", f"{where[:40]!r} is none; use first, last, before or after.")


@router.post("/run-all")
def run_all_(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Add the ticked entries of the catalogue in the order of their numbers, and start the plan."""

    def verb(tx: Connection) -> None:
        catalogued = entries.require(call.catalogue, plan)
        keys = in_order(form, [each.key for each in catalogued.entries])
        if not keys:
            raise Invalid("entry", "is missing; tick at least one.")
        run_all(tx, catalogued, keys, actor=call.actor)

    return act(request, call, form, verb, back=f"/plans/{plan}", to=f"/plans/{plan}")


def in_order(form: Form, known: list[str]) -> list[str]:
    """The ticked keys by the numbers beside them; the same number, or none, leaves the preset order. Raises Invalid."""
    ticked = form.texts("entry")
    preset = {key: place for place, key in enumerate(known, 1)}
    if not form.flag("entry") and form.flag("every"):
        return known
    unknown = [key for key in ticked if key not in preset]
    if unknown:
        raise Invalid("entry", f"the catalogue has no {unknown[0][:80]!r} any more; look at it again.")
    numbers = {key: form.number(f"order:{preset[key]}", 0, 100_000) for key in ticked}
    return sorted(ticked, key=lambda key: (numbers[key] if numbers[key] is not None else preset[key], preset[key]))


@router.post("/repair-all")
def repair_all_(request: Request, call: Calling, plan: PlanName, form: Fields) -> Response:
    """Put the repair of everything unresolved at the front, decide it, and let the plan go on."""

    def verb(tx: Connection) -> None:
        repair_all(tx, plan, entries.plan_of(call.catalogue, plan), actor=call.actor)

    return act(request, call, form, verb, back=f"/plans/{plan}", to=f"/plans/{plan}")
