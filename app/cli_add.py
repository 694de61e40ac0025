"""The command `add`: one item, or many from a file of JSON lines."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from app import given, show
from app.cli_call import Actor, AsJson, PlanName, actor, say, transact
from app.cli_items import After, Before, First, Last
from app.cli_plan import OnInterruptOption, TitleOption, TriesOption
from app.progress import counted
from ordering.errors import Invalid
from ordering.model import Last as AtTheEnd

if TYPE_CHECKING:
    from rich.progress import Progress
    from sqlalchemy import Connection

    from ordering.add import Added
    from ordering.model import NewItem, Place

T = TypeVar("T")


def add(
    plan: PlanName,
    task: Annotated[str | None, typer.Argument(metavar="[TASK]", help="A task's name: shell, http, or one of your own.")] = None,
    args: Annotated[str | None, typer.Argument(metavar="[ARGS-JSON]", help="Its arguments: an object of named ones, or a list.")] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="FILE", help="Many items: one JSON object a line; - is the standard input.")
    ] = None,
    title: TitleOption = "",
    kind: Annotated[str, typer.Option("--kind", metavar="WORD", help="What kind of work: fix, feature, audit, any word.")] = "",
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="The same key and content again give the same item.")] = None,
    first: First = False,
    last: Last = False,
    after: After = None,
    before: Before = None,
    delay: Annotated[str | None, typer.Option("--delay", metavar="DURATION", help="Not before this long from now: 90s, 15m, 2h.")] = None,
    not_before: Annotated[str | None, typer.Option("--not-before", metavar="TIME", help="Not before this time, with its zone.")] = None,
    on_interrupt: OnInterruptOption = None,
    max_attempts: TriesOption = None,
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Add an item to a plan, or many from a file.

    At the end, unless you say where. With --from, all of them are added or none.
    A line of the file is an object with task, args, title, kind, key, not_before, on_interrupt, max_attempts.

    \b
    Examples:
      relevo add nightly shell '{"command": ["make", "test"]}' --title "Run the tests"
      relevo add nightly http '{"url": "https://example.org/hook"}' --delay 15m --first
      relevo add nightly --from items.jsonl
    """
    from ordering.model import NewItem

    to = given.place(first=first, last=last, after=after, before=before) or AtTheEnd()
    if from_ is not None:
        alone = {"TASK": task, "--title": title, "--kind": kind, "--key": key, "--delay": delay, "--not-before": not_before}
        for name, value in {**alone, "--on-interrupt": on_interrupt, "--max-attempts": max_attempts}.items():
            if value:
                raise Invalid(name, "does not go with --from; write it into the lines of the file.")
        _print(plan, _add_file(plan, from_, to, by), as_json)
        return
    if task is None:
        raise Invalid("TASK", "is missing; name a task, for example shell, or give many with --from FILE.")
    if delay is not None and not_before is not None:
        raise Invalid("--delay", "does not go with --not-before; give one of them.")
    positional, named = given.arguments("ARGS-JSON", args)
    wait = None if delay is None else given.duration("--delay", delay)
    moment = None if not_before is None else given.moment("--not-before", not_before)

    def verb(tx: Connection) -> list[Added]:
        from app.known_tasks import require
        from ordering import add

        require(tx, [task])
        new = NewItem(
            task=task,
            args=positional,
            kwargs=named,
            title=title,
            kind=kind,
            key=key,
            not_before=moment,
            delay=wait,
            on_interrupt=on_interrupt,
            max_attempts=max_attempts,
        )
        return [add.add(tx, plan, new, actor=actor(by), to=to)]

    _print(plan, transact(verb), as_json)


def _add_file(plan: str, name: str, to: Place, by: str | None) -> list[Added]:
    from app import item_lines

    with counted() as progress:
        with item_lines.opened(name) as file:
            about = os.fstat(file.fileno())
            bar = progress.add_task("Reading", total=about.st_size if stat.S_ISREG(about.st_mode) else None)
            new = list(item_lines.read(file, name, lambda size: progress.advance(bar, size)))
        progress.update(bar, total=1, completed=1)

        def verb(tx: Connection) -> list[Added]:
            from sqlalchemy import text

            from app.known_tasks import require
            from ordering import add

            # A million items take half a minute to check and copy; ten minutes is the bound for any file.
            tx.execute(text("set local statement_timeout = '10min'; set local idle_in_transaction_session_timeout = '10min'"))
            require(tx, (each.task for each in new))
            return add.add_many(tx, plan, _ticking(progress, new), actor=actor(by), to=to)

        return transact(verb)


def _ticking(progress: Progress, new: list[NewItem]) -> Iterable[NewItem]:
    return progress.track(new, description="Adding")


def _print(plan: str, added: list[Added], as_json: bool) -> None:
    if as_json:
        show.as_json(*added)
        return
    new = [each.id for each in added if each.new]
    known = len(added) - len(new)
    again = f"; {known} {'was' if known == 1 else 'were'} there already" if known else ""
    if len(added) == 1:
        say(f"Added item {added[0].id} to {plan}." if new else f"Item {added[0].id} of {plan} has this key and content already.")
    else:
        span = f" ({new[0]} to {new[-1]})" if new else ""
        say(f"Added {len(new)} items{span} to {plan}{again}.")
