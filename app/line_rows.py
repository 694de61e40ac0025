"""The rows of a line as the page has them: each item with what its menu's "up" and "down" ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from app import wording
from ordering.lines import ItemLine


@dataclass(frozen=True)
class Row:
    """An item with its texts as the page has them: its position in two parts, its title cut, since when it waits and for how long.

    `up` and `down`: places as the form of a move takes them, with what is seen on the other side; empty where there is none.
    """

    item: ItemLine
    whole: str
    part: str
    title: str
    since: str
    age: str
    up: str = ""
    down: str = ""


def row(item: ItemLine, now: datetime, up: str = "", down: str = "") -> Row:
    """The row of one item; `now` is the database's clock."""
    whole, part = wording.place(item.position)
    title = wording.cut(item.title or item.task)
    return Row(item, whole, part, title, wording.iso(item.since), wording.ago(now, item.since), up, down)


def rows(items: Sequence[ItemLine], now: datetime, *, beyond: ItemLine | None, from_the_top: bool) -> list[Row]:
    """The rows of a part of the line, behind which `beyond` follows. What lies outside is unknown, and nothing was seen there."""
    known = [*items, *([beyond] if beyond else [])]

    def place(word: str, neighbour: int, far: int, *, ends: bool) -> str:
        if not 0 <= neighbour < len(known):
            return ""
        seen = f" {known[far].id}" if 0 <= far < len(known) else " end" if ends else ""
        return f"{word} {known[neighbour].id}{seen}"

    return [
        row(item, now, up=place("before", at - 1, at - 2, ends=from_the_top), down=place("after", at + 1, at + 2, ends=beyond is None))
        for at, item in enumerate(items)
    ]
