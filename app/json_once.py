"""JSON as somebody wrote it, each name of an object once: of two values for one name nobody knows which was meant."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


class Twice(ValueError):
    """An object has the same name twice; the message says which."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        name = next(each for each in names if names.count(each) > 1)
        raise Twice(f"names {name[:80]!r} twice in one object; give it once")
    return found


LONGEST_INT = 4300  # digits: Python's own limit, whose message speaks of its switches


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_INT:
        raise ValueError(f"a number of {len(digits)} digits is too long")
    return int(digits)


def reader(constant: Callable[[str], Any] | None = None) -> Callable[[str], Any]:
    """A function that reads JSON; `constant` is given NaN and the infinities.

    It raises Twice, ValueError for what is no JSON, and RecursionError.
    """
    return json.JSONDecoder(object_pairs_hook=_object, parse_int=_whole, parse_constant=constant).decode


loads = reader()
