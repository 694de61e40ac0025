"""Commands that decide dead letters, some by number or many at once: `dead retry`, `dead skip`, `dead resolve`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from app import given, show
from app.cli_call import Actor, AsJson, actor, database, item_id, say, transact
from app.progress import counted
from ordering.errors import Invalid

if TYPE_CHECKING:
    from ordering.dead_decision import Verb
    from ordering.items import Edit

Items = Annotated[list[int] | None, typer.Argument(metavar="[ITEM...]", parser=item_id, help="One or more items' numbers.")]
OfPlan = Annotated[str | None, typer.Option("--plan", metavar="PLAN", help="All dead letters of this stream.")]
OfGroup = Annotated[str | None, typer.Option("--group", metavar="GROUP", help="All dead letters of this cause, as `--groups` lists it.")]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, for the trail.")]


def retry(
    items: Items = None,
    plan: OfPlan = None,
    group: OfGroup = None,
    args: Annotated[
        str | None, typer.Option("--args", metavar="JSON", help="Of one item: run it with these arguments, an object or a list.")
    ] = None,
    kwargs: Annotated[str | None, typer.Option("--kwargs", metavar="JSON", help="Of one item: run it with these named arguments.")] = None,
    note: Note = "",
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Let dead letters run again.

    Those named, all of them or none; or all of a stream, of a cause, or of both. Each gets a fresh allowance of tries and one more
    replay. One alone may run with other arguments.

    \b
    Examples:
      relevo dead retry 12 13
      relevo dead retry 12 --args '{"to": "ops@example.org"}' --note "there was a typo"
      relevo dead retry --plan mails --group 5f0c3a9b12de
    """
    from ordering import dead_decision

    change = _change(args, kwargs)
    if change is None:
        _decide(dead_decision.Verb.RETRY, items, plan, group, note, by, as_json)
        return
    if len(set(items or ())) != 1 or plan is not None or group is not None:
        raise Invalid("--args" if args is not None else "--kwargs", "goes with one item, named by its number; others may need others.")
    (one,) = set(items or ())
    transact(lambda tx: dead_decision.retry_edited(tx, one, change, actor=actor(by), note=note))
    _answer(dead_decision.Verb.RETRY, 1, 0, [one], as_json)


def skip(
    items: Items = None, plan: OfPlan = None, group: OfGroup = None, note: Note = "", by: Actor = None, as_json: AsJson = False
) -> None:
    """Settle dead letters: not needed.

    \b
    Examples:
      relevo dead skip 12 13 --note "obsolete"
      relevo dead skip --group 5f0c3a9b12de
    """
    from ordering.dead_decision import Verb

    _decide(Verb.SKIP, items, plan, group, note, by, as_json)


def resolve(
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="How it was resolved; it must be said.")],
    items: Items = None,
    plan: OfPlan = None,
    group: OfGroup = None,
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Settle dead letters: done in another way.

    \b
    Examples:
      relevo dead resolve 12 --note "sent by hand"
      relevo dead resolve --plan mails --note "sent by hand"
    """
    from ordering.dead_decision import Verb

    _decide(Verb.RESOLVE, items, plan, group, note, by, as_json)


def _change(args: str | None, kwargs: str | None) -> Edit | None:
    from ordering.items import Edit

    if args is None and kwargs is None:
        return None
    positional, named = given.arguments("--args", args)
    if kwargs is not None:
        if named:
            raise Invalid("--kwargs", "does not go with an object in --args; give the named arguments once.")
        listed, named = given.arguments("--kwargs", kwargs)
        if listed or json.loads(kwargs) == []:
            raise Invalid("--kwargs", "must be a JSON object of named arguments.")
    return Edit(args=None if args is None else positional, kwargs=named)


def _decide(verb: Verb, items: list[int] | None, plan: str | None, group: str | None, note: str, by: str | None, as_json: bool) -> None:
    from ordering import dead, dead_decision

    if bool(items) == (plan is not None or group is not None):
        raise Invalid("letters", "must be named in one way: by ITEM..., or by --plan, --group or both.")
    if items:
        done = transact(lambda tx: dead_decision.decide(tx, verb, items, actor=actor(by), note=note))
        _answer(verb, len(done), 0, done, as_json)
        return
    with database() as engine, counted() as progress:
        with engine.begin() as tx:
            chosen = dead.which(tx, plan=plan, group=group)
        bar = progress.add_task(f"Letters to {verb}", total=None)
        all_done = dead_decision.decide_all(
            engine, verb, chosen, actor=actor(by), note=note, tick=lambda done, total: progress.update(bar, completed=done, total=total)
        )
    _answer(verb, all_done.decided, all_done.meanwhile, [], as_json)


SAID = {"retry": "To run again", "skip": "Skipped", "resolve": "Resolved"}


def _answer(verb: Verb, decided: int, meanwhile: int, named: list[int], as_json: bool) -> None:
    if as_json:
        show.as_json({"verb": verb, "decided": decided, "meanwhile": meanwhile})
        return
    what = f"{decided} dead letter{'' if decided == 1 else 's'}"
    if named:
        what = ("item " if decided == 1 else "items ") + ", ".join(map(str, named))
    others = f"; {meanwhile} had been decided by somebody else meanwhile" if meanwhile else ""
    say(f"{SAID[verb]}: {what}{others}.")
