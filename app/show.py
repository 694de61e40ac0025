"""How results look: JSON for programs, tables for people. What jobs wrote is always text, never markup or control."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from app import out
from app.terminal_text import one_line

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 240  # columns where there is no terminal: nothing is cut that a program after the pipe may look for
CUT = frozenset({"title", "note", "data", "before", "after", "why", "name", "result"})


def plain(value: Any) -> Any:
    """`value` as JSON knows it: dataclasses as objects, times as ISO 8601 in UTC, lengths of time in seconds, positions as text."""
    match value:
        case Enum():
            return value.value
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case Decimal():
            return f"{value:f}"
        case timedelta():
            return value.total_seconds()
        case UUID() | Path():
            return str(value)
        case str() | int() | float() | bool() | None:
            return value
        case Mapping():
            return {str(plain(key)): plain(each) for key, each in value.items()}
        case Sequence():
            return [plain(each) for each in value]
        case _ if dataclasses.is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form")


def shallow(value: Any) -> Any:
    """For `json.dumps(default=...)`: the same forms as `plain`, one level at a time, so that what jobs wrote is not walked through."""
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    return plain(value)


def as_json(*values: Any) -> None:
    """Print each value as one line of JSON. ASCII only, so that no encoding of the terminal or the file is in the way."""
    for value in values:
        out.write(json.dumps(plain(value)) + "\n")


def console(*, stderr: bool = False) -> Console:
    """A rich console that neither interprets nor decorates what it is given."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "") -> None:
    """Print a table, one line a row; on a narrow terminal the columns of CUT are cut and the others are not."""
    from rich.table import Table
    from rich.text import Text

    made_for = console()
    # An ellipsis where the terminal knows one.
    overflow: Literal["ellipsis", "crop"] = "ellipsis" if made_for.encoding.startswith("utf") else "crop"
    made = Table(box=None, pad_edge=False, header_style="bold", title=Text(title, style="bold") if title else None, title_justify="left")
    for name in columns:
        made.add_column(name.upper(), no_wrap=name not in CUT)
    for row in rows:
        made.add_row(*(Text(one_line("" if cell is None else str(cell), 120), no_wrap=True, overflow=overflow) for cell in row))
    with made_for.capture() as captured:
        made_for.print(made)
    out.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def when(moment: datetime | None) -> str:
    """A time to the second, in UTC."""
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def ago(moment: datetime | None, now: datetime) -> str:
    """How long from `moment` to `now`, in its largest unit; `in ...` where it is still to come."""
    if moment is None:
        return ""
    seconds = (now - moment).total_seconds()
    size = abs(seconds)
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if size >= 2 * length:
            text = f"{int(size // length)}{unit}"
            break
    else:
        text = f"{size:.1f}s" if size < 10 else f"{int(size)}s"
    return text if seconds >= 0 else f"in {text}"
