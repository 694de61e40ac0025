"""The body of a form: fields as a browser sends them, and what verbs need of them. Each refusal names the field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request

from app.door import BODY
from app.problem import Refused
from app.schemas import BIGGEST_ID
from ordering.errors import Invalid

E = TypeVar("E", bound=Enum)
MOST_FIELDS = 5_000
ADDRESS_LIMIT = 2_000  # characters of a page's address


@dataclass(frozen=True)
class Form:
    """The fields of a form, each with all its values in their order. A field that was left empty is as one that is not there."""

    fields: dict[str, list[str]] = field(default_factory=dict)

    def text(self, name: str, default: str = "") -> str:
        """The field's first value."""
        return self.fields.get(name, [default])[0]

    def given(self, name: str) -> str | None:
        """The field's first value, or None where nothing was written."""
        return self.text(name).strip() or None

    def texts(self, name: str) -> list[str]:
        """All its values."""
        return self.fields.get(name, [])

    def number(self, name: str, least: int, most: int) -> int | None:
        """A whole number within its bounds, or None where nothing was written. Raises Invalid."""
        written = self.given(name)
        return None if written is None else whole(name, written, least, most)

    def id(self, name: str) -> int | None:
        """An item's id, or None where nothing was written. Raises Invalid."""
        return self.number(name, 1, BIGGEST_ID)

    def ids(self, name: str) -> list[int]:
        """The ids of a list of ticked boxes, each once. Raises Invalid."""
        return list(dict.fromkeys(whole(name, written, 1, BIGGEST_ID) for written in self.texts(name)))

    def flag(self, name: str) -> bool:
        """Whether the box is ticked."""
        return name in self.fields

    def edited(self, name: str) -> str | None:
        """What the field says now, without spaces around it; None where that is what it said when the form was made, or it is not there.

        The form says so in a field `was:NAME`: what somebody else has changed meanwhile is not put back by a field that nobody touched.
        """
        was = self.fields.get(f"was:{name}")
        if was is None and name not in self.fields:
            return None
        now = self.text(name).strip()
        return None if was is not None and now == was[0].strip() else now

    def one_of(self, name: str, enum: type[E]) -> E | None:
        """A word of `enum`, or None where nothing was chosen. Raises Invalid."""
        written = self.given(name)
        if written is None:
            return None
        try:
            return enum(written)
        except ValueError:
            words = ", ".join(str(word.value) for word in enum)
            raise Invalid(name, f"{written[:40]!r} is none; use one of {words}.") from None

    def back(self, default: str) -> str:
        """The page to go back to: the field `back` if it is an address of this server, else `default`."""
        return local(self.text("back")) or default


def whole(name: str, written: str, least: int, most: int) -> int:
    """A whole number within its bounds. Raises Invalid naming the field."""
    digits = written.strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and least <= int(digits) <= most):
        raise Invalid(name, f"{written[:40]!r} is not a whole number from {least} to {most}.")
    return int(digits)


def local(address: str) -> str | None:
    """`address` if it is a path of this server, else None: nobody is sent to another site."""
    if not address.startswith("/") or address.startswith(("//", "/\\")) or len(address) > ADDRESS_LIMIT:
        return None
    if not address.isprintable() or "\\" in address:
        return None
    parts = urlsplit(address)
    return address if not parts.scheme and not parts.netloc and not parts.path.startswith("/api/") else None


def read(body: bytes) -> Form:
    """The fields of an urlencoded body. Raises Refused (400)."""
    try:
        pairs: Sequence[tuple[str, str]] = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except UnicodeDecodeError:
        raise Refused(400, "The form is not in UTF-8.") from None
    except ValueError:
        raise Refused(400, f"The form has more than {MOST_FIELDS} fields.") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return Form(fields)


def _of(request: Request) -> Form:
    return read(request.scope.get(BODY, b""))


Fields = Annotated[Form, Depends(_of)]
