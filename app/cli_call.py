"""One call of the command line: the database it talks to, who calls, and how it ends when something is in the way."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from app import out
from app.terminal_text import one_line

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from workers.settings import Settings

T = TypeVar("T")

DONE, FAILED, WRONG, UNREACHABLE = 0, 1, 2, 3
INTERRUPTED = 130  # what a shell says of a command that Ctrl-C ended
BIGGEST_ID = 2**63 - 1


def item_id(written: str) -> int:
    """An item's id as a person wrote it. Raises BadParameter."""
    if not (written.isascii() and written.isdigit() and 1 <= len(written) < 20 and 1 <= int(written) <= BIGGEST_ID):
        raise typer.BadParameter(f"{written[:40]!r} is not an item's number; `relevo plan show PLAN` lists them.")
    return int(written)


ItemId = Annotated[int, typer.Argument(metavar="ITEM", parser=item_id, help="The item's number, as `relevo plan show` lists it.")]
ItemIds = Annotated[list[int], typer.Argument(metavar="ITEM...", parser=item_id, help="One or more items' numbers.")]
PlanName = Annotated[str, typer.Argument(metavar="PLAN", help="The plan's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line, for programs.")]
Actor = Annotated[str | None, typer.Option("--actor", metavar="NAME", help="Who does this, for the trail; the system's user if left out.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the trail.")]


def actor(given: str | None) -> str:
    """The name that the trail keeps: the one given, else that of the system's user."""
    if given is not None:
        return given
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user often has no name
        return f"uid {os.getuid()}"


def settings() -> Settings:
    """The settings of this call. Raises SettingsError."""
    from workers.settings import load

    return load()


def database_url(given: Settings) -> str:
    """The configured database, else the embedded one of the platform that is up. Raises NotUp where there is neither."""
    if given.database_url is not None:
        return given.database_url
    from app import platform

    return platform.urls(given)[0]


@contextmanager
def database(given: Settings | None = None) -> Iterator[Engine]:
    """An engine for the length of the call; what Postgres refuses leaves as a sentence (`cli_errors` has the codes)."""
    from ordering import db

    engine = db.engine(database_url(given or settings()), name="relevo cli", pooled=False)
    try:
        with db.reachable():
            yield engine
    finally:
        engine.dispose()


def transact(verb: Callable[[Connection], T]) -> T:
    """Run one verb in a transaction of its own and return what it returns."""
    from ordering import db

    with database() as engine:
        return db.transact(engine, verb)


def say(sentence: str) -> None:
    """Print one line of the answer."""
    out.write(one_line(sentence, 2000) + "\n")
