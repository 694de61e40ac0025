"""What a person does with one item: move it by its row's own form, edit it, postpone, cancel, and the three decisions."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import given
from app.act import act
from app.api_call import Calling
from app.api_item import ItemId, may_edit
from app.board_items import moment
from app.form import Fields, Form, whole
from app.schemas import BIGGEST_ID
from ordering import clock, decision, items, move
from ordering.errors import Invalid
from ordering.items import Edit
from ordering.model import After, Before, Item, OnInterrupt, Place
from ordering.move import Seen

router = APIRouter(prefix="/items/{item}", include_in_schema=False)
PLACES: dict[str, type[Before] | type[After]] = {"before": Before, "after": After}


@router.post("/move")
def move_(request: Request, call: Calling, item: ItemId, form: Fields) -> Response:
    """Give the item another place; refused with the fresh order if another stands on the other side of the gap by now."""

    def verb(tx: Connection) -> None:
        to, seen = place(form)
        move.move(tx, item, to, actor=call.actor, seen=seen)

    return act(request, call, form, verb)


def place(form: Form) -> tuple[Place, Seen | None]:
    """Where to, and what was seen there. Raises Invalid.

    A button says it in one field, `to`: first, last, "before ID [SEEN]", "after ID [SEEN]"; the script in the fields `before`, `after`
    and `seen`.
    """
    word, *rest = form.text("to").split() or [""]
    if word in PLACES and 1 <= len(rest) <= 2:
        seen = given.seen(rest[1]) if len(rest) == 2 else None
        return PLACES[word](whole("to", rest[0], 1, BIGGEST_ID)), seen
    if word and (rest or word not in ("first", "last")):
        raise Invalid("to", "is no place; use first, last, before or after an item.")
    to = given.place(first=word == "first", last=word == "last", after=form.id("after"), before=form.id("before"))
    if to is None:
        raise Invalid("place", "is missing; say where to.")
    return to, given.seen(form.given("seen"))


@router.post("/edit")
def edit(request: Request, call: Calling, item: ItemId, form: Fields) -> Response:
    """Change what has not started."""

    def verb(tx: Connection) -> None:
        change = changed(items.get(tx, item), form)
        may_edit(call, tx, item, change)
        if change != Edit():
            items.edit(tx, item, change, actor=call.actor)

    return act(request, call, form, verb)


def changed(old: Item, form: Form) -> Edit:
    """What the form says otherwise than the item does now. A field that the form has not is left alone. Raises Invalid."""
    given_args = None
    if form.given("args") is not None:
        args, kwargs = given.arguments("args", form.text("args"))
        if old.args and old.kwargs and set(kwargs) == {"args", "kwargs"}:  # as such an item's are shown
            args, kwargs = kwargs["args"], kwargs["kwargs"]
        given_args = None if (args, kwargs) == (old.args, old.kwargs) else (args, kwargs)

    def other(name: str, before: str) -> str | None:
        return form.text(name).strip() if form.flag(name) and form.text(name).strip() != before else None

    return Edit(
        task=other("task", old.task),
        args=None if given_args is None else given_args[0],
        kwargs=None if given_args is None else given_args[1],
        title=other("title", old.title),
        kind=other("kind", old.kind),
        on_interrupt=form.one_of("on_interrupt", OnInterrupt),
        max_attempts=form.number("max_attempts", 1, 1000),
    )


@router.post("/postpone")
def postpone(request: Request, call: Calling, item: ItemId, form: Fields) -> Response:
    """Take it out of the line until a time."""

    def verb(tx: Connection) -> None:
        until = moment(form, clock.now(tx))
        items.postpone(tx, item, until, actor=call.actor, reason=form.text("reason").strip())

    return act(request, call, form, verb)


@router.post("/wake")
def wake(request: Request, call: Calling, item: ItemId, form: Fields) -> Response:
    """Let it go on now: a sleep, a postponement or a backoff ends."""

    def verb(tx: Connection) -> None:
        items.postpone(tx, item, clock.now(tx), actor=call.actor, reason=form.text("reason").strip())

    return act(request, call, form, verb, back=f"/items/{item}")


@router.post("/cancel")
def cancel(request: Request, call: Calling, item: ItemId, form: Fields) -> Response:
    """Settle it; a running body is stopped."""
    return act(request, call, form, lambda tx: items.cancel(tx, item, actor=call.actor, reason=form.text("reason").strip()))


@router.post("/retry")
def retry(request: Request, call: Calling, item: ItemId, form: Fields) -> Response:
    """Let it run again at its place, changed first if the form says something else than the item."""

    def verb(tx: Connection) -> None:
        change = changed(items.get(tx, item), form)
        if change != Edit():
            may_edit(call, tx, item, change)
        decision.retry(tx, item, actor=call.actor, note=form.text("note").strip(), change=None if change == Edit() else change)

    return act(request, call, form, verb)


@router.post("/skip")
def skip(request: Request, call: Calling, item: ItemId, form: Fields) -> Response:
    """It is not needed any more."""
    return act(request, call, form, lambda tx: decision.skip(tx, item, actor=call.actor, note=form.text("note").strip()))


@router.post("/resolve")
def resolve(request: Request, call: Calling, item: ItemId, form: Fields) -> Response:
    """It was done in another way; the note says how."""
    return act(request, call, form, lambda tx: decision.resolve(tx, item, actor=call.actor, note=form.text("note").strip()))
