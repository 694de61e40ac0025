"""The page of dead letters: grouped by what they died of, one group or letter opened, beside the messages that were refused."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import json_text, page
from app.act import Place, page_at
from app.api_call import Call, Calling, Digits
from app.changes import Change
from app.form import whole
from app.item_arguments import arguments as arguments_of
from app.page import Refusal
from app.schemas import BIGGEST_ID
from ordering import dead, history, tasks, views
from ordering.dead import Group, Letters, Which
from ordering.dead_decision import Verb
from ordering.errors import UnknownItem
from ordering.history import History
from ordering.refused import RefusedMessage, refused

router = APIRouter(include_in_schema=False)
GROUPS, LETTERS, REFUSED = 50, 25, 20
OPEN = 8  # groups that are open at once
STREAMS = 500  # to filter by; another one can stand in the address


@dataclass(frozen=True)
class Asked:
    """What the address asks for: filters, the groups that are open (as `plan~group`), and one letter."""

    plan: str | None = None
    task: str | None = None
    text: str | None = None
    open: tuple[str, ...] = ()
    cursors: tuple[tuple[str, str], ...] = ()
    letter: int | None = None

    def chosen(self, tx: Connection, plan: str | None = None, group: str | None = None) -> Which:
        """The letters that the filters leave, of one plan and group if those are given."""
        return dead.which(tx, plan=plan or self.plan, group=group, task=self.task, containing=self.text)

    def filters(self) -> dict[str, str]:
        """The filters alone, by their fields."""
        given = {"plan": self.plan, "task": self.task, "text": self.text}
        return {name: value for name, value in given.items() if value}

    def address(self, *, open: tuple[str, ...] | None = None, letter: int | None = None, after: tuple[str, str] | None = None) -> str:
        """The page's address with other groups open, another letter, or another page of one group."""
        pairs: list[tuple[str, str]] = list(self.filters().items())
        pairs += [("open", each) for each in (self.open if open is None else open)]
        pairs += [("after", f"{name}~{cursor}") for name, cursor in ([after] if after else self.cursors)]
        chosen = letter if letter is not None else self.letter
        pairs += [("letter", str(chosen))] if chosen else []
        return f"/dead-letters?{urlencode(pairs)}" if pairs else "/dead-letters"

    def toggled(self, name: str) -> str:
        """The address with this group opened, or closed where it is open."""
        others = tuple(each for each in self.open if each != name)
        return self.address(open=others if name in self.open else (*others, name)[-OPEN:])


def asked(
    plan: Annotated[str, Query(max_length=100)] = "",
    task: Annotated[str, Query(max_length=200)] = "",
    text: Annotated[str, Query(max_length=200)] = "",
    open: Annotated[list[str], Query(max_length=OPEN)] = [],  # noqa: B006 - never changed
    after: Annotated[list[str], Query(max_length=OPEN)] = [],  # noqa: B006
    letter: Annotated[int | None, Digits, Query(ge=1, lt=2**63)] = None,
) -> Asked:
    """What the query says."""
    cursors = []
    for each in after:
        name, _, cursor = each.rpartition("~")
        cursors.append((name, cursor))
    return Asked(plan.strip() or None, task.strip() or None, text.strip() or None, tuple(dict.fromkeys(open)), tuple(cursors), letter)


Asking = Annotated[Asked, Depends(asked)]


def at_address(pairs: Sequence[tuple[str, str]]) -> Asked:
    """What a page's own address asked for. Raises Invalid."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    first = {name: found[0] for name, found in values.items()}
    letter = whole("letter", first["letter"], 1, BIGGEST_ID) if "letter" in first else None
    opened, after = values.get("open", [])[:OPEN], values.get("after", [])[:OPEN]
    return asked(first.get("plan", ""), first.get("task", ""), first.get("text", ""), opened, after, letter)


@dataclass(frozen=True)
class Draft:
    """What somebody typed to let a letter run again with other arguments; `changes` once it was checked."""

    letter: int
    args: str
    note: str = ""
    changes: list[Change] | None = None


@dataclass(frozen=True)
class Bulk:
    """What one press decided; `more`: there was no time for all of them."""

    verb: Verb
    decided: int
    more: bool


def _bulk(query: Mapping[str, str]) -> Bulk | None:
    verb, decided = query.get("verb", ""), query.get("decided", "")
    if verb not in list(Verb) or not re.fullmatch("[0-9]{1,9}", decided, re.ASCII):
        return None
    return Bulk(Verb(verb), int(decided), "more" in query)


@dataclass(frozen=True)
class Shown:
    """What the page shows."""

    count: int
    groups: list[Group]
    open: dict[str, Letters]
    letter: History | None
    refused: list[RefusedMessage]
    plans: list[str]
    tasks: list[str] = field(default_factory=list)


def name_of(group: Group) -> str:
    """A group's name in addresses and ids: its plan and its cause."""
    return f"{group.plan}~{group.group}"


def read(tx: Connection, asked: Asked) -> Shown:
    """What there is to show. Raises UnknownPlan, NotStream, Invalid."""
    chosen = asked.chosen(tx)
    groups = dead.groups(tx, chosen, limit=GROUPS)
    known = {name_of(each) for each in groups}
    opened = {}
    for name in asked.open:
        if name in known:
            plan, _, group = name.partition("~")
            cursor = dict(asked.cursors).get(name)
            after = None if cursor is None else dead.Cursor.parse(cursor)
            opened[name] = dead.letters(tx, asked.chosen(tx, plan, group), limit=LETTERS, after=after)
    try:
        letter = None if asked.letter is None else history.history(tx, asked.letter)
    except UnknownItem:
        letter = None
    streams = views.names(tx, limit=STREAMS, streams=True)
    return Shown(
        dead.count(tx, chosen), groups, opened, letter, refused(tx, limit=REFUSED), streams, [each.name for each in tasks.offered(tx)]
    )


@router.get("/dead-letters")
def dead_letters(request: Request, call: Calling, asked: Asking) -> Response:
    """Dead letters by cause."""
    return show(request, call, asked, bulk=_bulk(request.query_params))


@page_at("/dead-letters")
def refused_form(request: Request, call: Call, at: Place, refusal: Refusal) -> Response:
    """The page after a refusal, with what was typed."""
    asked = at_address(parse_qsl(at.address.partition("?")[2]))
    draft = None
    if refusal.action.endswith("/edit"):
        draft = Draft(int(refusal.action.split("/")[-2]), refusal.form.text("args"), refusal.form.text("note"))
    return show(request, call, asked, refusal=refusal, draft=draft)


def show(
    request: Request,
    call: Call,
    asked: Asked,
    *,
    refusal: Refusal | None = None,
    here: str | None = None,
    draft: Draft | None = None,
    bulk: Bulk | None = None,
) -> Response:
    """The page as `asked`; `draft` is what somebody edits, `bulk` what has just been decided."""
    found = call.read(lambda tx: read(tx, asked))
    extra: dict[str, Any] = {}
    if found.letter is not None:
        arguments = arguments_of(found.letter.item)
        extra = {"arguments": json_text.readable(arguments), "written": json_text.editable(arguments)}
    return page.render(
        request,
        call,
        "dead_letters.html",
        refusal.status if refusal else 200,
        here=here or asked.address(),
        refusal=refusal,
        asked=asked,
        page=found,
        name_of=name_of,
        draft=draft,
        note=refusal.form.text("note") if refusal else "",
        bulk=bulk,
        **extra,
    )
