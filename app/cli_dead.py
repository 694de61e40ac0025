"""Commands that show dead letters: `dead list`, `dead show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from app import show
from app.cli_call import AsJson, ItemId, say, transact
from ordering.errors import Invalid

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from ordering.dead import Group, Letter
    from ordering.refused import RefusedMessage

REFUSED_SHOWN = 20


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
