"""Commands on one item: move, edit, postpone, cancel."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from app import given, show
from app.cli_call import Actor, AsJson, ItemId, ItemIds, Reason, actor, item_id, say, transact
from app.cli_plan import OnInterruptOption, TriesOption
from ordering.errors import Invalid

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from ordering.model import Item

First = Annotated[bool, typer.Option("--first", help="In front of everything that waits.")]
Last = Annotated[bool, typer.Option("--last", help="Behind everything.")]
After = Annotated[int | None, typer.Option("--after", metavar="ID", parser=item_id, help="Right behind this item.")]
Before = Annotated[int | None, typer.Option("--before", metavar="ID", parser=item_id, help="Right in front of this item.")]


def move(
    item: ItemId,
    first: First = False,
    last: Last = False,
    after: After = None,
    before: Before = None,
    seen: Annotated[
        str | None, typer.Option("--seen", metavar="ID", help="What you saw on the other side of the gap, or `end`; refused if it changed.")
    ] = None,
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Move a waiting or postponed item to another place of its plan.

    \b
    Example: relevo move 12 --after 7 --seen 8
    """
    from ordering import move

    to = given.place(first=first, last=last, after=after, before=before)
    if to is None:
        raise Invalid("place", "is missing; say --first, --last, --after ID or --before ID.")
    seen_there = given.seen(seen)
    moved = transact(lambda tx: move.move(tx, item, to, actor=actor(by), seen=seen_there))
    _answer(as_json, f"Item {item} stands at {moved.position:f} of plan {moved.plan}.", moved)


def edit(
    item: ItemId,
    task: Annotated[str | None, typer.Option("--task", metavar="NAME", help="Another task.")] = None,
    args: Annotated[str | None, typer.Option("--args", metavar="JSON", help="Other arguments: an object, or a list.")] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Another title.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="WORD", help="Another kind.")] = None,
    on_interrupt: OnInterruptOption = None,
    max_attempts: TriesOption = None,
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Change an item that has not started yet.

    What is left out stays as it is.

    \b
    Example: relevo edit 12 --args '{"command": ["make", "test"]}' --title "Run the tests"
    """
    from app.known_tasks import require
    from ordering import items

    given_args, given_kwargs = given.arguments("--args", args)
    change = items.Edit(
        task=task,
        args=None if args is None else given_args,
        kwargs=None if args is None else given_kwargs,
        title=title,
        kind=kind,
        on_interrupt=on_interrupt,
        max_attempts=max_attempts,
    )
    if change == items.Edit():
        raise Invalid("edit", "changes nothing; give at least one of --task, --args, --title, --kind, --on-interrupt and --max-attempts.")

    def verb(tx: Connection) -> Item:
        if task is not None:
            require(tx, [task])
        return items.edit(tx, item, change, actor=actor(by))

    _answer(as_json, f"Item {item} is changed.", transact(verb))


def postpone(
    item: ItemId,
    until: Annotated[str | None, typer.Option("--until", metavar="TIME", help="A time with its zone, as 2030-01-31T09:00:00Z.")] = None,
    for_: Annotated[str | None, typer.Option("--for", metavar="DURATION", help="How long from now: 90s, 15m, 1h30m, 2d.")] = None,
    reason: Reason = "",
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Take an item out of the line until a time.

    It then stands at its old place. `--for 0s` brings it back now.

    \b
    Example: relevo postpone 12 --for 2h --reason "the mirror is down"
    """
    from ordering import clock, items

    if (until is None) == (for_ is None):
        raise Invalid("time", "must be given once: either --until TIME or --for DURATION.")
    delay = timedelta(0) if for_ is None else given.duration("--for", for_)
    moment = None if until is None else given.moment("--until", until)

    def verb(tx: Connection) -> Item:
        when = moment or clock.now(tx) + delay
        return items.postpone(tx, item, when, actor=actor(by), reason=reason)

    done = transact(verb)
    answer = f"is postponed until {show.when(done.not_before)}" if done.not_before else "is back in the line"
    _answer(as_json, f"Item {item} {answer}.", done)


def cancel(item: ItemIds, reason: Reason = "", by: Actor = None, as_json: AsJson = False) -> None:
    """Cancel items that have not ended; a running body is stopped.

    \b
    Example: relevo cancel 12 13 --reason "not needed any more"
    """
    from ordering import items

    done = transact(lambda tx: [items.cancel(tx, each, actor=actor(by), reason=reason) for each in dict.fromkeys(item)])
    _answer(as_json, f"Cancelled {_named(done)}.", *done)


def retry(
    item: ItemIds,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, for the trail.")] = "",
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Let failed or interrupted items run again.

    Each at its place, with a fresh allowance of tries.

    \b
    Example: relevo retry 12
    """
    from ordering import decision

    done = transact(lambda tx: [decision.retry(tx, each, actor=actor(by), note=note) for each in dict.fromkeys(item)])
    _answer(as_json, f"To run again: {_named(done)}.", *done)


def skip(
    item: ItemIds,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, for the trail.")] = "",
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Settle failed or interrupted items: not needed.

    \b
    Example: relevo skip 12 --note "obsolete"
    """
    from ordering import decision

    done = transact(lambda tx: [decision.skip(tx, each, actor=actor(by), note=note) for each in dict.fromkeys(item)])
    _answer(as_json, f"Skipped {_named(done)}.", *done)


def resolve(
    item: ItemIds,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="How it was resolved; it must be said.")],
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Settle failed or interrupted items: done in another way.

    \b
    Example: relevo resolve 12 --note "ran it by hand"
    """
    from ordering import decision

    done = transact(lambda tx: [decision.resolve(tx, each, actor=actor(by), note=note) for each in dict.fromkeys(item)])
    _answer(as_json, f"Resolved {_named(done)}.", *done)


def _named(done: list[Item]) -> str:
    return ("item " if len(done) == 1 else "items ") + ", ".join(str(item.id) for item in done)


def _answer(as_json: bool, sentence: str, *done: Item) -> None:
    if as_json:
        show.as_json(*done)
    else:
        say(sentence)
