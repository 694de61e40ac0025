"""What is given on the command line, parsed: times, durations, arguments, places. Each refusal names the option."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from app import json_once
from ordering.errors import Invalid
from ordering.model import After, Before, First, Json, Last, Place

if TYPE_CHECKING:
    from ordering.move import Seen

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
PARTS = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([smhdw])", re.ASCII)


def duration(field: str, written: str) -> timedelta:
    """A duration such as 90s, 15m, 1h30m, 2d; a number alone is seconds. Raises Invalid."""
    compact = written.strip().lower().replace(" ", "")
    if re.fullmatch(r"\d{1,9}(\.\d{1,6})?", compact, re.ASCII):
        compact += "s"
    if not compact or PARTS.sub("", compact):
        raise Invalid(field, f"{written[:40]!r} is not a duration; write for example 90s, 15m, 1h30m or 2d.")
    seconds = sum(float(number) * UNITS[unit] for number, unit in PARTS.findall(compact))
    if seconds > 3660 * 86_400:
        raise Invalid(field, "is more than ten years; use a shorter time.")
    return timedelta(seconds=seconds)


def moment(field: str, written: str) -> datetime:
    """A time in ISO 8601 with its zone, in UTC. Raises Invalid."""
    try:
        when = datetime.fromisoformat(written.strip())
        if when.tzinfo is None:
            raise Invalid(field, f"{written[:40]!r} has no time zone; write for example 2030-01-31T09:00:00Z.")
        return when.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid(field, f"{written[:40]!r} is not a time; write for example 2030-01-31T09:00:00Z.") from None


def arguments(field: str, written: str | None) -> tuple[list[Json], dict[str, Json]]:
    """A task's arguments as JSON: a list of positional ones, or an object of named ones. Raises Invalid."""
    if written is None:
        return [], {}
    try:
        value = json_once.loads(written)
    except json_once.Twice as error:
        raise Invalid(field, f"{error}.") from None
    except (ValueError, RecursionError) as error:
        raise Invalid(field, f'is not JSON ({error}); write for example \'{{"command": ["make", "test"]}}\'.') from None
    match value:
        case list():
            return value, {}
        case dict():
            return [], value
        case _:
            raise Invalid(field, "must be a JSON object of named arguments or a list of positional ones.")


def json_value(field: str, written: str) -> Json:
    """Any JSON value. Raises Invalid."""
    try:
        return json_once.loads(written)
    except json_once.Twice as error:
        raise Invalid(field, f"{error}.") from None
    except (ValueError, RecursionError) as error:
        raise Invalid(field, f"is not JSON ({error}); write for example '{{\"id\": 7}}'.") from None


def position(field: str, written: str) -> Decimal:
    """A position in a line, such as 4 or 3.5. Raises Invalid."""
    if not re.fullmatch(r"-?[0-9]{1,15}([.,][0-9]{1,24})?", written.strip(), re.ASCII):
        raise Invalid(field, f"{written[:40]!r} is not a position; write for example 4 or 3.5.")
    return Decimal(written.strip().replace(",", "."))


def place(*, first: bool, last: bool, after: int | None, before: int | None) -> Place | None:
    """The place that the options name, or None if none does. Raises Invalid if more than one does."""
    chosen: list[Place] = []
    if first:
        chosen.append(First())
    if last:
        chosen.append(Last())
    if after is not None:
        chosen.append(After(after))
    if before is not None:
        chosen.append(Before(before))
    if len(chosen) > 1:
        raise Invalid("place", "is given more than once; use one of --first, --last, --after ID and --before ID.")
    return chosen[0] if chosen else None


def seen(written: str | None) -> Seen | None:
    """What the person saw on the far side of the gap: an item's id, or `end` for nothing there. Raises Invalid."""
    from ordering.move import Seen  # lazily: it loads SQLAlchemy

    if written is None:
        return None
    if written.lower() == "end":
        return Seen(None)
    if not re.fullmatch(r"[0-9]{1,18}", written):
        raise Invalid("--seen", f"{written[:40]!r} is neither an item's id nor the word end.")
    return Seen(int(written))
