"""What differs between two JSON values, place by place, as people check it before they let something run again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ordering.model import Json

MOST = 50  # changes that are told
SHOWN = 200  # characters of a value


@dataclass(frozen=True)
class Change:
    """At `place` (a.b[2]) stood `old` and stands `new`; None where there is nothing."""

    place: str
    old: str | None
    new: str | None


def changes(old: Json, new: Json) -> list[Change]:
    """The first MOST differences."""
    found: list[Change] = []
    for change in _between("", old, new):
        found.append(change)
        if len(found) == MOST:
            break
    return found


def _between(place: str, old: Json, new: Json) -> Iterator[Change]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            inner = f"{place}.{name}" if place else str(name)
            yield from _member(inner, name in old, old.get(name), name in new, new.get(name))
    elif isinstance(old, list) and isinstance(new, list):
        for index in range(max(len(old), len(new))):
            has_old, has_new = index < len(old), index < len(new)
            yield from _member(f"{place}[{index}]", has_old, old[index] if has_old else None, has_new, new[index] if has_new else None)
    elif type(old) is not type(new) or old != new:
        yield Change(place or "…", _written(old), _written(new))


def _member(place: str, has_old: bool, old: Json, has_new: bool, new: Json) -> Iterator[Change]:
    if has_old and has_new:
        yield from _between(place, old, new)
    else:
        yield Change(place, _written(old) if has_old else None, _written(new) if has_new else None)


def _written(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
