"""A stream's rate in Celery's words: items per second, minute or hour. Pure."""

from __future__ import annotations

import re
from decimal import Decimal

from ordering.errors import Invalid

UNITS = {"s": 1, "m": 60, "h": 3600}
WRITTEN = re.compile(r"(\d{1,6}(?:\.\d{1,3})?)(?:/([smh]))?", re.ASCII)
SLOWEST, FASTEST = Decimal(1) / 86_400, Decimal(100_000)  # items per second


def parse(written: str) -> Decimal | None:
    """Items per second from `10/s`, `100/m`, `5/h` or `10` (a second); None for `none`, no limit. Raises Invalid naming rate."""
    word = written.strip().lower()
    if word == "none":
        return None
    found = WRITTEN.fullmatch(word)
    if found is None:
        raise Invalid("rate", f"{written[:40]!r} is not a rate; write for example 10/s, 100/m, 5/h, or none.")
    return checked(Decimal(found[1]) / UNITS[found[2] or "s"])


def checked(rate: Decimal) -> Decimal:
    """`rate`, in items per second, if it lies between one a day and 100,000 a second. Raises Invalid naming rate."""
    if not SLOWEST <= rate <= FASTEST:
        raise Invalid("rate", "is out of range; use between 0.042/h (one a day) and 100000/s, or none.")
    return rate


def shown(rate: Decimal) -> str:
    """The rate as people write it, in the first unit in which it is a whole number."""
    for unit, seconds in UNITS.items():
        number = round(rate * seconds, 6)
        if number == number.to_integral_value():
            return f"{number:.0f}/{unit}"
    return f"{round(rate * UNITS['h'], 3):f}/h"
