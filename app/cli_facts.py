"""Commands on facts and on who hears them: emit, facts, fact, subscriptions, unsubscribe."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from app import given, show
from app.cli_call import BIGGEST_ID, Actor, AsJson, Reason, actor, say, transact

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from ordering.facts import Emitted, Fact

FactType = Annotated[str, typer.Argument(metavar="TYPE", help="What happened: a name such as invoice.issued.")]


def fact_id(written: str) -> int:
    """A fact's number as a person wrote it. Raises BadParameter."""
    if not (written.isascii() and written.isdigit() and 1 <= len(written) < 20 and 1 <= int(written) <= BIGGEST_ID):
        raise typer.BadParameter(f"{written[:40]!r} is not a fact's number; `relevo facts` lists them.")
    return int(written)


def emit(
    type: FactType,
    data: Annotated[str, typer.Argument(metavar="[DATA-JSON]", help="What is to be known about it, as JSON.")] = "{}",
    key: Annotated[str | None, typer.Option("--key", metavar="KEY", help="The same type, key and data again give the same fact.")] = None,
    as_json: AsJson = False,
) -> None:
    """Store a fact: something that happened.

    Each task that hears its type gets an item with the data as its argument. A fact that nobody hears is kept.

    \b
    Examples:
      relevo emit invoice.issued '{"id": 7}'
      relevo emit invoice.issued '{"id": 7}' --key invoice-7
    """
    value = given.json_value("DATA-JSON", data)

    def verb(tx: Connection) -> Emitted:
        from ordering import facts

        return facts.emitted(tx, facts.emit(tx, type, value, key=key))

    done = transact(verb)
    if as_json:
        show.as_json(done)
    elif done.new:
        say(f"Emitted fact {done.id}; {_heard(done.heard)}.")
    else:
        say(f"Fact {done.id} has this type, key and data already.")


def _heard(count: int) -> str:
    match count:
        case 0:
            return "nobody hears it"
        case 1:
            return "1 task hears it"
        case _:
            return f"{count} tasks hear it"


def facts(
    type: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only facts of this type.")] = None,
    unheard: Annotated[bool, typer.Option("--unheard", help="Only those that no task heard.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, max=10_000, help="How many.")] = 50,
    cursor: Annotated[int | None, typer.Option("--after", metavar="ID", parser=fact_id, help="Go on behind this fact of the list.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the facts, the latest first.

    HEARD is how many tasks got an item when it was emitted.

    \b
    Examples:
      relevo facts --type invoice.issued
      relevo facts --unheard
    """
    from ordering import facts

    page = transact(lambda tx: facts.facts(tx, type=type, unheard=unheard, limit=limit, before=cursor))
    if as_json:
        show.as_json(*page.facts)
        return
    columns = ("fact", "type", "at", "heard", "key", "data")
    show.table(columns, ((each.id, each.type, show.when(each.at), each.heard, each.key, each.data) for each in page.facts))
    if page.next is not None:
        say(f"More: add --after {page.next}")


def fact(
    fact: Annotated[int, typer.Argument(metavar="FACT", parser=fact_id, help="The fact's number, as `relevo facts` lists it.")],
    as_json: AsJson = False,
) -> None:
    """Show one fact and what became of it.

    \b
    Example: relevo fact 7
    """
    from ordering import facts

    found = transact(lambda tx: facts.fact(tx, fact))
    if as_json:
        show.as_json(found)
    else:
        _print(found)


def _print(found: Fact) -> None:
    say(f"Fact {found.id}: {found.type}")
    if found.key is not None:
        say(f"  key: {found.key}")
    say(f"  data: {json.dumps(found.data, ensure_ascii=False)}")
    say(f"  emitted: {show.when(found.at)}, heard by {found.heard}")
    if found.items:
        say("Items:")
        columns = ("item", "plan", "task", "state", "since", "tries", "note")
        show.table(
            columns,
            (
                (each.id, each.plan, each.task, each.state, show.ago(each.since, found.now), each.tries or "", each.error)
                for each in found.items
            ),
        )
    elif found.heard:
        say("Its items are settled and were removed by the plan's retention.")


def subscriptions(as_json: AsJson = False) -> None:
    """List which task hears which facts.

    WAITING, OUT and UNRESOLVED count the items that its facts became; LAST is when the latest fact of the type was emitted.

    \b
    Example: relevo subscriptions
    """
    from ordering import subscriptions

    found = transact(subscriptions.subscriptions)
    if as_json:
        show.as_json(*found)
        return
    columns = ("type", "task", "plan", "waiting", "out", "unresolved", "last")
    show.table(
        columns, ((each.type, each.task, each.plan, each.waiting, each.out, each.unresolved, show.when(each.last)) for each in found)
    )


def unsubscribe(
    type: FactType,
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task that is to hear it no longer.")],
    reason: Reason = "",
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Let a task no longer hear a type of facts.

    What it has heard already stays. A worker whose task still says `on=` subscribes it again when it starts.

    \b
    Example: relevo unsubscribe invoice.issued tasks.notify --reason "nobody reads it"
    """
    from ordering import subscriptions

    removed = transact(lambda tx: subscriptions.unsubscribe(tx, type, task, actor=actor(by), reason=reason))
    if as_json:
        show.as_json(removed)
    else:
        say(f"{task} no longer hears {type} (a worker whose task still says `on=` subscribes it again when it starts).")
