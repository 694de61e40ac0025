"""Commands on schedules: create, list, show, pause, resume, remove."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from app import given, show
from app.cli_call import Actor, AsJson, PlanName, Reason, actor, say, settings, transact
from app.cli_plan import TitleOption
from ordering.model import Missed

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

    from ordering.schedule import Schedule

Name = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule's name.")]


def create(
    name: Annotated[str, typer.Argument(metavar="SCHEDULE", help="Its name: a-z, 0-9, dot, dash and underscore.")],
    plan: PlanName,
    cron: Annotated[str, typer.Argument(metavar="CRON", help="Minute, hour, day, month, day of the week.")],
    task: Annotated[str, typer.Argument(metavar="TASK", help="A task's name: shell, http, or one of your own.")],
    args: Annotated[str | None, typer.Argument(metavar="[ARGS-JSON]", help="Its arguments: an object of named ones, or a list.")] = None,
    timezone: Annotated[str, typer.Option("--timezone", metavar="ZONE", help="Whose clock: Europe/Berlin.")] = "UTC",
    missed: Annotated[
        Missed, typer.Option("--missed", help="Ticks that came while nothing ran: one item for all, none, or each (the latest 100).")
    ] = Missed.ONE,
    title: TitleOption = "",
    kind: Annotated[str, typer.Option("--kind", metavar="WORD", help="What kind of work: fix, feature, audit, any word.")] = "",
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Add an item to a plan again and again, by the clock.

    \b
    Example: relevo schedule create backup nightly "30 2 * * *" shell '{"command": ["make", "backup"]}' --timezone Europe/Berlin
    """
    from ordering import schedule

    positional, named = given.arguments("ARGS-JSON", args)

    def verb(tx: Connection) -> Schedule:
        from app.known_tasks import require

        require(tx, [task])
        new = schedule.NewSchedule(name, plan, cron, task, positional, named, title, kind, timezone, missed)
        return schedule.create(tx, new, actor=actor(by))

    _answer(transact(verb), "Created schedule {name}.", as_json)


def list_(as_json: AsJson = False) -> None:
    """List the schedules and when each ticks next.

    \b
    Example: relevo schedule list
    """
    from ordering import schedule

    found = transact(schedule.list_)
    if as_json:
        show.as_json(*found)
        return
    declared = _in_catalogue()
    columns = ("schedule", "plan", "cron", "time zone", "next", "last", "missed", "task", "note")
    show.table(
        columns,
        (
            (each.name, each.plan, each.cron, each.timezone, show.when(each.next_at), show.when(each.last_at), each.missed, each.task,
             _note(each, declared))
            for each in found
        ),
    )  # fmt: skip


def show_(name: Name, as_json: AsJson = False) -> None:
    """Show one schedule and its next ticks.

    \b
    Example: relevo schedule show backup
    """
    from ordering import schedule

    found = transact(lambda tx: schedule.get(tx, name))
    if as_json:
        show.as_json(found)
        return
    say(f"Schedule {found.name}: {found.cron} ({found.timezone}) to plan {found.plan}")
    fields = {
        "task": found.task,
        "arguments": json.dumps(found.kwargs or found.args, ensure_ascii=False),
        "title": found.title,
        "kind": found.kind,
        "missed": found.missed,
        "last tick": show.when(found.last_at),
        "note": _note(found, _in_catalogue()),
    }
    for title, value in fields.items():
        if value:
            say(f"  {title}: {value}")
    _ticks(found)


def pause(name: Name, reason: Reason = "", by: Actor = None, as_json: AsJson = False) -> None:
    """Pause a schedule: it ticks no more until it is resumed.

    \b
    Example: relevo schedule pause backup --reason "the disk is full"
    """
    from ordering import schedule

    found = transact(lambda tx: schedule.pause(tx, name, actor=actor(by), reason=reason))
    _answer(found, "Schedule {name} is paused.", as_json)


def resume(name: Name, reason: Reason = "", by: Actor = None, as_json: AsJson = False) -> None:
    """Resume a schedule: it ticks again, from now on.

    \b
    Example: relevo schedule resume backup
    """
    from ordering import schedule

    found = transact(lambda tx: schedule.resume(tx, name, actor=actor(by), reason=reason))
    _answer(found, "Schedule {name} ticks.", as_json)


def remove(name: Name, reason: Reason = "", by: Actor = None, as_json: AsJson = False) -> None:
    """Remove a schedule. The items that it has added stay.

    \b
    Example: relevo schedule remove backup
    """
    from ordering import schedule

    found = transact(lambda tx: schedule.remove(tx, name, actor=actor(by), reason=reason))
    _answer(found, "Removed schedule {name}.", as_json)
    if not as_json and found.name in (_in_catalogue() or ()):
        say("The catalogue still has it, so `relevo up`, `relevo worker` and `relevo run-all` make it again.")


def _answer(found: Schedule, sentence: str, as_json: bool) -> None:
    if as_json:
        show.as_json(found)
        return
    say(sentence.format(name=found.name))
    _ticks(found)


def _ticks(found: Schedule) -> None:
    from ordering import cron

    if found.paused or not found.ticks:
        return
    zone = cron.zone(found.timezone)

    def line(at: datetime) -> tuple[object, ...]:
        return show.when(at), f"{at.astimezone(zone):%a %Y-%m-%d %H:%M %Z}"

    show.table(("next ticks", found.timezone), map(line, found.ticks))


def _in_catalogue() -> set[str] | None:
    """The names of the schedules in the catalogue, or None where there is none that can be read."""
    from app import catalogue
    from app.fields import BadInput

    try:
        found = catalogue.load(settings().catalogue)
    except BadInput:
        return None
    return {each.name for plan in found.plans.values() for each in plan.schedules}


def _note(found: Schedule, declared: set[str] | None) -> str:
    notes = [
        "paused" if found.paused else "",
        f"cannot tick: {found.problem}" if found.problem else "",
        "not in the catalogue any more" if found.declared and declared is not None and found.name not in declared else "",
    ]
    return "; ".join(filter(None, notes))
