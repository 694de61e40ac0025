"""The fields of a table that a person wrote, in TOML or JSON, each taken once and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, TypeVar

from app.given import duration
from ordering import cron
from ordering.errors import Invalid, RelevoError
from ordering.model import Json
from ordering.plans import NAME
from ordering.rate import checked, parse
from ordering.text import ARGS_LIMIT, checked_json, visible

T = TypeVar("T")
D = TypeVar("D")
E = TypeVar("E", bound=Enum)


class BadInput(RelevoError):
    """What a person wrote cannot be used; the message names the place (file and entry, or line) and the field."""


class Fields:
    """A table at `where` whose fields are taken one by one, each checked; what is left at the end is unknown."""

    def __init__(self, where: str, fields: Mapping[str, Any]) -> None:
        self.where = where
        self.fields = dict(fields)

    def take(self, name: str, check: Callable[[Any], T], default: D) -> T | D:
        """The field `name` as `check` returns it, or `default`. Raises BadInput if `check` raises Invalid."""
        return self._checked(name, check) if name in self.fields else default

    def need(self, name: str, check: Callable[[Any], T], example: str) -> T:
        """As `take`, for a field that must be there."""
        if name not in self.fields:
            raise BadInput(f"{self.where}: {name}: is missing; write for example {example}.")
        return self._checked(name, check)

    def _checked(self, name: str, check: Callable[[Any], T]) -> T:
        try:
            return check(self.fields.pop(name))
        except Invalid as error:
            raise BadInput(f"{self.where}: {name}: {str(error).removeprefix(f'{error.field}: ')}") from None

    def end(self, known: str) -> None:
        """Refuse fields that nobody took."""
        for name in self.fields:
            raise BadInput(f"{self.where}: {name}: is not a field; the fields are {known}.")


def whole(where: str, value: Any) -> dict[str, Any]:
    """`value` if it is a table of fields. Raises BadInput naming `where`."""
    if not isinstance(value, dict):
        raise BadInput(f"{where}: must be a table, not {_named(value)}.")
    return value


def _named(value: Any) -> str:
    names = {bool: "true or false", str: "a text", int: "a number", float: "a number", list: "a list", dict: "a table", type(None): "null"}
    return names.get(type(value), f"a {type(value).__name__}")


def _wrong(wanted: str, value: Any) -> Invalid:
    return Invalid("", f"must be {wanted}, not {_named(value)}.")


# Checks: each returns the value in its type, or raises Invalid with the problem.


def table(value: Any) -> dict[str, Any]:
    """A table."""
    if not isinstance(value, dict):
        raise _wrong("a table", value)
    return value


def listed(value: Any) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise _wrong("a list", value)
    return value


def modules(value: Any) -> list[str]:
    """A list of module names."""
    for each in listed(value):
        if not isinstance(each, str) or not all(part.isidentifier() for part in each.split(".")):
            raise Invalid("", f'{str(each)[:80]!r} is not a module; write for example ["examples.invoices.tasks"].')
    return list(value)


def text_of(limit: int) -> Callable[[Any], str]:
    """A text of up to `limit` characters."""

    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise _wrong("a text", value)
        return visible("", value, limit)

    return check


def word_of(limit: int) -> Callable[[Any], str]:
    """A text that is not empty."""

    def check(value: Any) -> str:
        if value == "":
            raise Invalid("", "is empty.")
        return text_of(limit)(value)

    return check


def name(value: Any) -> str:
    """A name as plans and schedules have them."""
    if not NAME.fullmatch(text_of(200)(value)):
        raise Invalid("", f"{value[:80]!r} is not a name; use up to 63 of a-z, 0-9, dot, dash and underscore, a letter or digit first.")
    return str(value)


def flag(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise _wrong("true or false", value)
    return value


def number(value: Any) -> float:
    """A number that has a place in an order: neither infinite nor nan."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong("a number", value)
    if not abs(value) < 1e15:
        raise Invalid("", "is out of range; use a number between -1e15 and 1e15.")
    return value


def tries(value: Any) -> int:
    """A number of tries."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong("a whole number", value)
    if not 1 <= value <= 1000:
        raise Invalid("", "is out of range; use 1 to 1000.")
    return value


def concurrency(value: Any) -> int:
    """How many items of a plan are out at once."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong("a whole number", value)
    if not 1 <= value <= 10_000:
        raise Invalid("", "is out of range; 1 is a serial plan, up to 10000 a stream.")
    return value


def seconds(value: Any) -> timedelta:
    """Up to a day, in seconds."""
    if not 0 <= number(value) <= 86_400:
        raise Invalid("", "is out of range; use 0 to 86400 seconds.")
    return timedelta(seconds=value)


def length(value: Any) -> timedelta:
    """A length of time: a text such as 30d or 1h30m, or a number of seconds."""
    if isinstance(value, str):
        return duration("", value)
    return duration("", str(number(value)))


def rate(value: Any) -> Decimal | None:
    """A rate in Celery's words, or a number of items per second."""
    if not isinstance(value, str):
        return checked(Decimal(str(number(value))))
    return parse(value)


def one_of(enum: type[E]) -> Callable[[Any], E]:
    """One of the words of `enum`."""

    def check(value: Any) -> E:
        try:
            return enum(value)
        except ValueError:
            words = " or ".join(f'"{word.value}"' for word in enum)
            raise Invalid("", f"must be {words}, not {str(value)[:80]!r}.") from None

    return check


def arguments(value: Any) -> list[Json] | dict[str, Json]:
    """A task's arguments: a table of named ones, or a list."""
    if not isinstance(value, (list, dict)):
        raise _wrong("a table of named arguments or a list", value)
    checked_json("", value, ARGS_LIMIT)
    return value


def cron_line(value: Any) -> str:
    """A cron expression."""
    return cron.checked_cron(text_of(cron.CRON_LIMIT)(value))


def timezone(value: Any) -> str:
    """The name of a time zone."""
    name = text_of(cron.ZONE_LIMIT)(value)
    cron.zone(name)
    return name
