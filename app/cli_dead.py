"""Commands on dead letters: list, show, and the three decisions on some of them or on many at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app import given, show
from app.cli_call import Actor, AsJson, ItemId, actor, database, item_id, say, transact
from app.progress import counted
from ordering.errors import Invalid

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from ordering.dead import Group, Letter
    from ordering.dead_decision import Verb
    from ordering.items import Edit
    from ordering.refused import RefusedMessage

REFUSED_SHOWN = 20

Items = Annotated[list[int] | None, typer.Argument(metavar="[ITEM...]", parser=item_id, help="One or more items' numbers.")]
OfPlan = Annotated[str | None, typer.Option("--plan", metavar="PLAN", help="All dead letters of this stream.")]
OfGroup = Annotated[str | None, typer.Option("--group", metavar="GROUP", help="All dead letters of this cause, as `--groups` lists it.")]
Note = Annotated[str, typer.Option("--note", metavar="TEXT", help="Why, for the trail.")]


def list_(
    plan: Annotated[str | None, typer.Argument(metavar="[PLAN]", help="Only those of this stream.")] = None,
    groups: Annotated[bool, typer.Option("--groups", help="One line for each cause, the most frequent first.")] = False,
    group: Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Only those of this cause.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many lines.")] = 50,
    cursor: Annotated[str | None, typer.Option("--after", metavar="CURSOR", help="Go on where the page before ended.")] = None,
    as_json: AsJson = False,
) -> None:
    """List dead letters.

    What failed in a stream and will not run again by itself. Under them stand the messages that were refused because nobody could
    read them.

    \b
    Examples:
      relevo dead list
      relevo dead list --groups
      relevo dead list mails --group 5f0c3a9b12de
    """
    from ordering import clock, dead
    from ordering.refused import refused

    begin = None if cursor is None else dead.Cursor.parse(cursor)
    if groups and begin is not None:
        raise Invalid("--after", "does not go with --groups; use --limit for more of them.")

    def read(tx: Connection) -> tuple[datetime, list[Group], list[Letter], dead.Cursor | None, list[RefusedMessage]]:
        chosen = dead.which(tx, plan=plan, group=group)
        if groups:
            return clock.now(tx), dead.groups(tx, chosen, limit=limit), [], None, []
        page = dead.letters(tx, chosen, limit=limit, after=begin)
        # A refused message belongs to no plan: it is shown once, beside all of them.
        beside = refused(tx, limit=min(limit, REFUSED_SHOWN)) if plan is None and group is None and begin is None else []
        return clock.now(tx), [], list(page.letters), page.next, beside

    now, causes, letters, following, beside = transact(read)
    if as_json:
        typed: list[tuple[str, Any]] = [("group", each) for each in causes]
        typed += [("letter", each) for each in letters] + [("refused message", each) for each in beside]
        show.as_json(*({"type": name, **show.plain(each)} for name, each in typed))
        return
    if groups:
        _print_groups(causes, now)
        return
    _print_letters(letters, now)
    if following is not None:
        named = "".join([f" {plan}" if plan else "", f" --group {group}" if group else ""])
        say(f"More: relevo dead list{named} --after {following}")
    if beside:
        say("")
        columns = ("refused", "by", "bytes", "why", "note")
        show.table(columns, ((show.ago(each.at, now), each.actor, each.size, each.reason, each.preview) for each in beside))


def _print_letters(letters: list[Letter], now: datetime) -> None:
    if not letters:
        say("There are no dead letters here.")
        return
    columns = ("item", "plan", "state", "since", "attempts", "replays", "group", "title", "note")
    show.table(columns, (
        (each.id, each.plan, each.state, show.ago(each.since, now), each.attempts, each.replays or "", each.group,
         each.title or f"{each.task} {each.arguments}", each.error)
        for each in letters
    ))  # fmt: skip


def _print_groups(causes: list[Group], now: datetime) -> None:
    if not causes:
        say("There are no dead letters here.")
        return
    columns = ("group", "plan", "letters", "first", "last", "example", "task", "note")
    show.table(columns, (
        (each.group, each.plan, each.count, show.ago(each.first, now), show.ago(each.last, now), each.example, each.task, each.pattern)
        for each in causes
    ))  # fmt: skip


def show_(item: ItemId, as_json: AsJson = False) -> None:
    """Show one dead letter: arguments, attempts, output, trail.

    \b
    Example: relevo dead show 12
    """
    from app.cli_show import describe
    from ordering import dead
    from ordering.dead_decision import no_letter
    from ordering.history import History, history

    def read(tx: Connection) -> tuple[Letter, int, History]:
        letter = dead.letter(tx, item)
        if letter is None:
            raise no_letter(tx, item)
        return letter, dead.count(tx, dead.which(tx, plan=letter.plan, group=letter.group)), history(tx, item)

    letter, alike, found = transact(read)
    if as_json:
        show.as_json({**show.plain(found), "group": letter.group, "alike": alike, "since": letter.since})
        return
    say(f"Dead letter since {show.when(letter.since)}, group {letter.group} ({alike} of this cause in {letter.plan})")
    describe(found)


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
      relevo dead retry 12 --args '{"to": "anna@example.org"}' --note "there was a typo"
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
