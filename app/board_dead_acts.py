"""What a person decides about dead letters: named ones, or all that a group or a filter has; and one with other arguments."""

from __future__ import annotations

import time
from datetime import datetime
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import given, language, page, problem
from app.act import REFUSALS, act, again
from app.api_call import Call, Calling
from app.api_item import ItemId, may_edit
from app.board_dead import Draft, at_address, show
from app.board_item import changed
from app.changes import changes
from app.form import Fields, Form
from app.item_arguments import arguments
from ordering import clock, dead, dead_decision, items
from ordering.dead import Cursor
from ordering.dead_decision import Verb
from ordering.errors import DatabaseUnreachable, Invalid
from ordering.items import Edit

router = APIRouter(prefix="/dead-letters", include_in_schema=False)
BATCH = dead_decision.BATCH
SECONDS = 8.0  # that one press may take; what is left then is done by the next one


@router.post("/{verb}")
def decide(request: Request, call: Calling, form: Fields, verb: Verb) -> Response:
    """Retry, skip or resolve: the ticked ones all or none, or all of a filter batch by batch."""
    if form.flag("all"):
        return _all(request, call, form, verb)

    def named(tx: Connection) -> None:
        ids = form.ids("item")
        if not ids:
            raise Invalid("item", "is missing; tick at least one.")
        dead_decision.decide(tx, verb, ids, actor=call.actor, note=form.text("note").strip())

    return act(request, call, form, named, back="/dead-letters")


def _all(request: Request, call: Call, form: Form, verb: Verb) -> Response:
    language.speak(language.of(request))
    back = form.back("/dead-letters")
    until: datetime | None = None
    after: Cursor | None = None
    decided, end = 0, time.monotonic() + SECONDS

    def batch(tx: Connection) -> tuple[int, Cursor | None, datetime]:
        chosen = dead.which(tx, plan=form.given("plan"), group=form.given("group"), task=form.given("task"), containing=form.given("text"))
        by = until or clock.now(tx)
        found = dead_decision.decide_batch(
            tx, verb, chosen, until=by, after=after, actor=call.actor, note=form.text("note").strip(), limit=BATCH
        )  # fmt: skip
        return len(found.done), found.next, by

    try:
        while True:
            count, after, until = call.read(batch)
            decided += count
            if after is None or time.monotonic() > end:
                break
    except DatabaseUnreachable:
        raise
    except REFUSALS as error:
        if decided == 0:
            return again(request, call, back, page.refusal(problem.told(error), request.url.path, form))
        after = after or Cursor(0, dead.BEFORE_ALL.position)
    return page.to(page.with_query(back, verb=verb, decided=decided, more=None if after is None else 1))


@router.post("/{item}/edit")
def edit_and_retry(request: Request, call: Calling, item: ItemId, form: Fields) -> Response:
    """Let one letter run again with other arguments; `check` only shows what would change."""
    if form.flag("check"):
        return _check(request, call, item, form)

    def verb(tx: Connection) -> None:
        change = changed(items.get(tx, item), form)
        if change == Edit():
            raise Invalid("args", "are as before; change them, or retry the letter as it is.")
        may_edit(call, tx, item, change)
        dead_decision.retry_edited(tx, item, change, actor=call.actor, note=form.text("note").strip())

    return act(request, call, form, verb, back="/dead-letters")


def _check(request: Request, call: Call, item: int, form: Form) -> Response:
    language.speak(language.of(request))
    back = form.back(f"/dead-letters?letter={item}")
    try:
        args, kwargs = given.arguments("args", form.given("args") or "{}")
        old = call.read(lambda tx: items.get(tx, item))
    except REFUSALS as error:
        return again(request, call, back, page.refusal(problem.told(error), request.url.path, form))
    draft = Draft(item, form.text("args"), form.text("note"), changes(arguments(old), kwargs or args or {}))
    return show(request, call, at_address(parse_qsl(back.partition("?")[2])), here=back, draft=draft)
