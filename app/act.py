"""One act of a person on the board: a form's verb in a transaction, and the page that answers it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import parse_qsl

from fastapi import Request
from fastapi.responses import Response
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException

from app import language, page, problem
from app.api_call import Call
from app.fields import BadInput
from app.form import Form
from app.page import Refusal
from ordering import db, done
from ordering.errors import DatabaseUnreachable, RelevoError

REFUSALS = (RelevoError, BadInput, HTTPException, DBAPIError)


@dataclass(frozen=True)
class Place:
    """A page of the board: its address, the parts of its path, and its query."""

    address: str
    parts: Mapping[str, str]
    query: Mapping[str, str]


class Show(Protocol):
    """Renders a page fresh, with a refusal if something was refused that was asked for on it."""

    def __call__(self, request: Request, call: Call, at: Place, refusal: Refusal) -> Response: ...


_pages: list[tuple[re.Pattern[str], Show]] = []


def page_at(path: str) -> Callable[[Show], Show]:
    """Register how the page at `path` (a regular expression with named parts) is rendered after a refusal."""

    def register(show: Show) -> Show:
        _pages.append((re.compile(path), show))
        return show

    return register


def act(
    request: Request,
    call: Call,
    form: Form,
    verb: Callable[[Connection], Any],
    *,
    back: str = "/",
    to: str | Callable[[], str] | None = None,
) -> Response:
    """Run `verb` and send the person back to the page that the form came from, which then says what was done.

    A refusal is answered by that page, rendered fresh, with the sentence, the status, and what was written in the form. `back`: the
    page where the form names none. `to`: where to go when it worked, if not back; asked once it has.
    """
    language.speak(language.of(request))
    came_from = form.back(back)

    def once(tx: Connection) -> tuple[int | None, list[int]]:
        returned = verb(tx)
        return done.latest(tx, call.actor), returned if isinstance(returned, Left) else Left()

    try:
        event, left = call.read(once)
    except DatabaseUnreachable:
        raise
    except REFUSALS as error:
        if isinstance(error, DBAPIError) and db.is_disconnect(error):
            raise
        return again(request, call, came_from, page.refusal(page.told(error), request.url.path, form))
    return page.to(page.with_query((to() if callable(to) else to) or came_from, done=event, left=",".join(map(str, left)) or None))


class Left(list[int]):
    """What a verb returns that did some of what it was asked for: the ids of the items that it left as they were."""


def again(request: Request, call: Call, address: str, refusal: Refusal) -> Response:
    """The page at `address`, fresh, with the refusal; the overview if no page is there that could show one."""
    path, _, query = address.partition("?")
    for pattern, show in _pages:
        if found := pattern.fullmatch(path):
            try:
                return show(request, call, Place(address, found.groupdict(), dict(parse_qsl(query))), refusal)
            except RelevoError:  # the page itself is gone, or its query is none: then the overview has the sentence
                break
    told = problem.Told(problem.Kind("refused", refusal.title, refusal.status), refusal.sentence, {}, {})
    return page.render(request, call, "refused.html", refusal.status, here=address, told=told, again=True)
