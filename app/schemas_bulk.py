"""The bodies of calls that name many things: items, events, entries of the catalogue."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from app.api_body import Body
from app.schemas import ItemId, MoveBody, NoteBody, PostponeBody, ReasonBody
from ordering.row import KEY_LIMIT
from ordering.undo import MOST as MOST_UNDONE

MOST = 1_000  # items of one call: each is locked, changed and told of, about a millisecond
Items = Annotated[list[ItemId], Field(min_length=1, max_length=MOST, description="Ids; they are taken in the order in which they stand.")]


class ManyMoveBody(MoveBody):
    """Which items go to one place."""

    items: Items


class ManyPostponeBody(PostponeBody):
    """Which items, until when."""

    items: Items


class ManyReasonBody(ReasonBody):
    """Which items, and why."""

    items: Items


class ManyNoteBody(NoteBody):
    """Which items, and why or how."""

    items: Items


class UndoBody(ReasonBody):
    """Which events to undo, by their ids."""

    events: list[ItemId] = Field(min_length=1, max_length=MOST_UNDONE)


class EntriesBody(Body):
    """Which entries of the catalogue, by their keys, in this order; all of them in the preset order where it is left out."""

    entries: list[Annotated[str, Field(min_length=1, max_length=KEY_LIMIT)]] | None = Field(None, min_length=1, max_length=10_000)
