"""Items as JSON lines: one object a line, checked before anything is added, each fault named by its line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, BinaryIO

from app import fields, given, json_once
from app.fields import BadInput, Fields
from ordering.errors import Invalid
from ordering.items import KIND_LIMIT, TASK_LIMIT, TITLE_LIMIT
from ordering.model import Json, NewItem, OnInterrupt
from ordering.row import KEY_LIMIT

LINE_LIMIT = 4_000_000  # bytes: more than the largest arguments that an item may have


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """The file of this name, or stdin for `-`. Raises BadInput if it cannot be opened."""
    if name == "-":
        if sys.stdin is None:
            raise BadInput("--from: the standard input is closed; give a file, or pipe the lines in.")
        yield sys.stdin.buffer
        return
    try:
        file = open(name, "rb")  # noqa: SIM115 - closed below
    except (OSError, ValueError) as error:
        raise BadInput(f"--from: {name[:200]!r} cannot be read ({getattr(error, 'strerror', None) or error}).") from None
    with file:
        yield file


def read(file: BinaryIO, name: str, tick: Callable[[int], None] = lambda size: None) -> Iterator[NewItem]:
    """The items of `file`, in its order; empty lines are left out. `tick` is told the bytes of each line.

    Raises BadInput naming the file (`name`), the line and the field.
    """
    for number, line in enumerate(iter(lambda: file.readline(LINE_LIMIT + 1), b""), 1):
        tick(len(line))
        where = f"{name}: line {number}"
        if len(line) > LINE_LIMIT:
            raise BadInput(f"{where}: is longer than {LINE_LIMIT} bytes.")
        if line.strip():
            yield item(where, line)


def item(where: str, line: bytes) -> NewItem:
    """The item of one line. Raises BadInput."""
    try:
        value = json_once.loads(line.decode("utf-8-sig"))  # editors elsewhere begin a file with a byte order mark
    except UnicodeDecodeError:
        raise BadInput(f"{where}: is not UTF-8.") from None
    except json_once.Twice as error:
        raise BadInput(f"{where}: {error}.") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where}: is not JSON ({error}).") from None
    given_fields = {name: each for name, each in fields.whole(where, value).items() if each is not None}
    table = Fields(where, given_fields)
    args: list[Json] | dict[str, Json] = table.take("args", fields.arguments, [])
    new = NewItem(
        task=table.need("task", fields.word_of(TASK_LIMIT), '"task": "shell"'),
        args=args if isinstance(args, list) else [],
        kwargs=args if isinstance(args, dict) else {},
        title=table.take("title", fields.text_of(TITLE_LIMIT), ""),
        kind=table.take("kind", fields.text_of(KIND_LIMIT), ""),
        key=table.take("key", fields.word_of(KEY_LIMIT), None),
        not_before=table.take("not_before", _moment, None),
        on_interrupt=table.take("on_interrupt", fields.one_of(OnInterrupt), None),
        max_attempts=table.take("max_attempts", fields.tries, None),
    )
    table.end("task, args, title, kind, key, not_before, on_interrupt, max_attempts")
    return new


def _moment(value: Any) -> datetime:
    if not isinstance(value, str):
        raise Invalid("", 'must be a time as a text, for example "2030-01-31T09:00:00Z".')
    return given.moment("", value)
