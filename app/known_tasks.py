"""Whether somebody offers the tasks that a person names, asked before anything is added."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection

from ordering import tasks

BUILT_IN = frozenset({"shell", "http"})  # every worker offers them, so a plan can be filled before the first one starts


def names(tx: Connection) -> set[str]:
    """The tasks that are built in, and those that a worker has ever offered."""
    return {*tasks.names(tx), *BUILT_IN}


def require(tx: Connection, names: Iterable[str]) -> None:
    """Raise UnknownTask for the first of `names` that is not built in and that no worker has ever offered."""
    for name in dict.fromkeys(names):
        if name not in BUILT_IN:
            tasks.require(tx, name)
