"""The columns of a new item, each checked before anything is written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ordering import items
from ordering.errors import Invalid
from ordering.model import NewItem, OnInterrupt
from ordering.text import ARGS_LIMIT, checked, checked_json, visible

KEY_LIMIT = 500  # characters


class Row(NamedTuple):
    """What an item is made of; `digest` stands for its content, so that a key can be compared."""

    task: str
    args: str
    kwargs: str
    title: str
    kind: str
    key: str | None
    digest: str | None
    entry: str | None
    repairs: int | None
    not_before: datetime | None
    on_interrupt: OnInterrupt | None
    max_attempts: int | None


def row_of(new: NewItem, now: Callable[[], datetime]) -> Row:
    """The row of `new`; `now` asks the database's clock, only if there is a time to check. Raises Invalid naming the field."""
    if not isinstance(new.args, list):
        raise Invalid("args", "must be a list of positional arguments.")
    if not isinstance(new.kwargs, dict):
        raise Invalid("args", "must be an object of named arguments.")
    if new.max_attempts is not None and not 1 <= new.max_attempts <= 1000:
        raise Invalid("max_attempts", f"{new.max_attempts} is out of range; use 1 to 1000.")
    if not new.task:
        raise Invalid("task", "is empty; name a task, for example shell.")
    if new.key == "":
        raise Invalid("key", "is empty; leave it out or write something.")
    if new.repairs is not None and not 0 < new.repairs < 2**63:
        raise Invalid("repairs", f"there is no item {new.repairs}.")
    return Row(
        task=checked("task", new.task, items.TASK_LIMIT),
        args=checked_json("args", new.args, ARGS_LIMIT),
        kwargs=checked_json("args", new.kwargs, ARGS_LIMIT),
        title=visible("title", new.title, items.TITLE_LIMIT),
        kind=visible("kind", new.kind, items.KIND_LIMIT),
        key=None if new.key is None else checked("key", new.key, KEY_LIMIT),
        digest=None if new.key is None else _digest(new),
        entry=None if new.entry is None else checked("entry", new.entry, KEY_LIMIT),
        repairs=new.repairs,
        not_before=_start(new, now),
        on_interrupt=new.on_interrupt,
        max_attempts=new.max_attempts,
    )


def _start(new: NewItem, now: Callable[[], datetime]) -> datetime | None:
    if new.delay is None:
        return None if new.not_before is None else items.checked_time("not_before", new.not_before, now())
    if new.not_before is not None:
        raise Invalid("delay", "does not go with not_before; give one of them.")
    if not timedelta(0) <= new.delay <= items.FARTHEST:
        raise Invalid("delay", "is negative or more than ten years; use another one.")
    return now() + new.delay


_written = json.JSONEncoder(sort_keys=True).encode


def _digest(new: NewItem) -> str:
    when = None if new.not_before is None else new.not_before.astimezone(UTC).isoformat()
    # A delay counts as it was said: said again, it is the same content, though the moment it names is another.
    policy = [new.on_interrupt, new.max_attempts, when, None if new.delay is None else new.delay.total_seconds()]
    content = _written([new.task, new.title, new.kind, new.entry, new.args, new.kwargs, *policy])
    return hashlib.sha256(content.encode()).hexdigest()
