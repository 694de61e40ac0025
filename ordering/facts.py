"""Facts: something that happened, stored in the transaction that made it true; each subscription turns it into an item of a stream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ordering import db, lines
from ordering.errors import FactKeyConflict, Invalid, UnknownFact
from ordering.model import Json
from ordering.row import KEY_LIMIT
from ordering.text import checked, checked_json

TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
DATA_LIMIT = 1_000_000  # bytes as JSON
PAGE_LIMIT = 10_000  # facts of one page at the most
ITEM_LIMIT = 1_000  # items shown of one fact

# Cast in steps that every driver takes: the connection is the caller's own, and so is its driver.
EMIT = text("select relevo.emit(cast(:type as text), cast(cast(:data as text) as jsonb), cast(:key as text))")


def emit(tx: Connection, type: str, data: Json, *, key: str | None = None) -> int:
    """Store a fact and one item for each subscription to its `type`, in the caller's transaction and nothing else; the fact's id.

    The same type, key and data give the same fact, and no second item. Raises Invalid naming the field; FactKeyConflict if the key was
    used for other data. What Postgres refused leaves the transaction to be rolled back.
    """
    check_type("type", type)
    if key is not None and not key:
        raise Invalid("key", "is empty; leave it out or write something.")
    values = {"type": type, "data": checked_json("data", data, DATA_LIMIT), "key": None if key is None else checked("key", key, KEY_LIMIT)}
    try:
        found: int = tx.execute(EMIT, values).scalar_one()
    except DBAPIError as error:
        _refuse(error)
        raise
    return found


def check_type(field: str, type: str) -> None:
    """Raise Invalid, naming `field`, if `type` cannot be the name of a fact."""
    if not isinstance(type, str) or not TYPE.fullmatch(type):
        raise Invalid(field, f"{str(type)[:80]!r} is not the name of a fact; use up to 200 letters, digits, dots, dashes and underscores.")


def _refuse(error: DBAPIError) -> None:
    # The function words its own refusals, for callers of any language: the field, a colon, the problem.
    worded = getattr(getattr(error.orig, "diag", None), "message_primary", None)
    said = worded.splitlines()[0] if worded else db.said(error)
    match db.sqlstate(error):
        case "RV400":
            field, _, problem = said.partition(": ")
            raise Invalid(field, problem) from None
        case "RV409":
            raise FactKeyConflict(said) from None
        case state if state[:2] in ("22", "54"):
            raise Invalid("data", f"cannot be stored ({said}).") from None


@dataclass(frozen=True)
class Emitted:
    """What an emit did: the fact's id, how many subscriptions heard it, and whether it is new (False: its key was known)."""

    id: int
    heard: int
    new: bool


EMITTED = text("select id, heard, xmin = cast(pg_current_xact_id() as xid) as new from relevo.fact where id = :id")


def emitted(tx: Connection, fact_id: int) -> Emitted:
    """What the emit that gave this id did, asked in the same transaction."""
    return Emitted(**tx.execute(EMITTED, {"id": fact_id}).one()._mapping)


@dataclass(frozen=True)
class FactLine:
    """A fact as one line of a list; `data` as JSON text, cut to lines.TEXT_LIMIT characters. `heard`: the subscriptions of that moment."""

    id: int
    type: str
    key: str | None
    data: str
    heard: int
    at: datetime


@dataclass(frozen=True)
class FactPage:
    """Facts, the latest first; `next` is where the following page begins (a fact's id), or None at the end."""

    facts: Sequence[FactLine]
    next: int | None


@dataclass(frozen=True)
class Fact:
    """A fact and the items it became, at most ITEM_LIMIT of them; those that were pruned since are missing. `now`: the database's clock."""

    id: int
    type: str
    key: str | None
    data: Json
    heard: int
    at: datetime
    now: datetime
    items: Sequence[lines.ItemLine]


def _page(where: str) -> str:
    return f"""
        select id, type, key, left(data::text, {lines.TEXT_LIMIT}) as data, heard, at from relevo.fact
        where id < :before {where} order by id desc limit :limit
    """


# One statement per filter, so that each walks its own index from its end.
PAGES = {
    (typed, unheard): text(_page(("and type = :type " if typed else "") + ("and heard = 0" if unheard else "")))
    for typed in (False, True)
    for unheard in (False, True)
}


def facts(tx: Connection, *, type: str | None = None, unheard: bool = False, limit: int = 50, before: int | None = None) -> FactPage:
    """Up to `limit` facts, the latest first: of one `type`, `unheard` ones only, older than the fact `before`. Raises Invalid."""
    if not 0 <= limit <= PAGE_LIMIT:
        raise Invalid("limit", f"{limit} is out of range; use 0 to {PAGE_LIMIT}.")
    if before is not None and not 0 < before < 2**63:
        raise Invalid("cursor", f"{before} is none; use the one that the page before gave.")
    values: dict[str, object] = {"before": before or 2**63 - 1, "limit": limit + 1}
    if type is not None:
        check_type("type", type)
        values["type"] = type
    rows = tx.execute(PAGES[type is not None, unheard], values).all()
    found = [FactLine(**row._mapping) for row in rows[:limit]]
    return FactPage(found, found[-1].id if found and len(rows) > limit else None)


FACT = text("select id, type, key, data, heard, at, now() as now from relevo.fact where id = :id")
ITEMS = text(f"select {lines.LINE} where i.fact_id = :id order by i.id limit {ITEM_LIMIT}")


def fact(tx: Connection, fact_id: int) -> Fact:
    """The fact with this id and the items it became. Raises UnknownFact."""
    row = tx.execute(FACT, {"id": fact_id}).one_or_none()
    if row is None:
        raise UnknownFact(fact_id)
    return Fact(**row._mapping, items=[lines.line(each) for each in tx.execute(ITEMS, {"id": fact_id})])
