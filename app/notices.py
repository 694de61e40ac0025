"""What a page says of the act that led to it: what was done, what of it can be undone, and which items were left as they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import Request
from sqlalchemy import Connection

from ordering import done, lines, trail
from ordering.lines import ItemLine
from ordering.trail import Event

FRESH = "10 minutes"  # a notice is of now: an address that was kept says nothing later
MOST = 500  # events of one act


@dataclass(frozen=True)
class Done:
    """An act: its events, the latest first, `undoable` the ids of those that can be undone, `left` the items that were left."""

    events: Sequence[Event]
    undoable: Sequence[int]
    left: Sequence[ItemLine]


def read(tx: Connection, request: Request, actor: str) -> Done | None:
    """The act that the parameters `done` and `left` name, if it was the caller's own and has just been done."""
    event = _number(request.query_params.get("done", ""))
    left = [number for each in request.query_params.get("left", "").split(",")[:MOST] if (number := _number(each))]
    ids = [] if event is None else done.together(tx, event, actor=actor, within=FRESH, limit=MOST)
    if not ids:
        return None
    events = trail.of_ids(tx, ids)
    return Done(events, [each.id for each in events if each.undoable], lines.of_ids(tx, left))


def _number(written: str) -> int | None:
    return int(written) if written.isascii() and written.isdigit() and len(written) < 19 else None
