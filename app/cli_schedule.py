"""Commands that change schedules: create, edit, pause, resume, remove, and add the item of one now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from app import given, show
from app.cli_call import Actor, AsJson, PlanName, Reason, actor, say, transact
from app.cli_plan import TitleOption
from app.cli_schedule_show import Name, answer, in_catalogue
from ordering.model import Missed

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from ordering.add import Added
    from ordering.schedule import Schedule


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

    answer(transact(verb), "Created schedule {name}.", as_json=as_json)


def edit(
    name: Name,
    plan: Annotated[str | None, typer.Option("--plan", metavar="PLAN", help="Another plan to add to.")] = None,
    cron: Annotated[str | None, typer.Option("--cron", metavar="CRON", help="Other ticks, counted from now.")] = None,
    timezone: Annotated[str | None, typer.Option("--timezone", metavar="ZONE", help="Another clock, counted from now.")] = None,
    task: Annotated[str | None, typer.Option("--task", metavar="NAME", help="Another task.")] = None,
    args: Annotated[str | None, typer.Option("--args", metavar="JSON", help="Other arguments: an object, or a list.")] = None,
    missed: Annotated[Missed | None, typer.Option("--missed", help="What is made of ticks that came while nothing ran.")] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Another title of its items.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="WORD", help="Another kind of its items.")] = None,
    by: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Change a schedule. The items that it has added stay as they are.

    What is left out stays as it is.

    \b
    Example: relevo schedule edit backup --cron "0 3 * * *" --missed skip
    """
    from ordering import schedule
    from ordering.errors import Invalid

    positional, named = given.arguments("--args", args)
    fields = {"plan": plan, "cron": cron, "timezone": timezone, "task": task, "missed": missed, "title": title, "kind": kind}
    change: dict[str, Any] = {field: value for field, value in fields.items() if value is not None}
    if args is not None:
        change |= {"args": positional, "kwargs": named}
    if not change:
        raise Invalid(
            "edit", "changes nothing; give at least one of --plan, --cron, --timezone, --task, --args, --missed, --title and --kind."
        )

    def verb(tx: Connection) -> Schedule:
        from app.known_tasks import require

        if task is not None:
            require(tx, [task])
        return schedule.edit(tx, name, change, actor=actor(by))

    found = transact(verb)
    answer(found, "Schedule {name} is changed.", as_json=as_json)
    if not as_json and found.name in (in_catalogue() or ()):
        say("The catalogue has it too: at the next `relevo up`, `relevo worker` or `relevo run-all` what stands there counts again.")


def add(name: Name, by: Actor = None, as_json: AsJson = False) -> None:
    """Add a schedule's item now. Its ticks come as before.

    \b
    Example: relevo schedule add backup
    """
    from ordering import schedule, schedule_now

    def verb(tx: Connection) -> tuple[Schedule, Added]:
        found = schedule.get(tx, name)
        return found, schedule_now.add_now(tx, found, actor=actor(by))

    found, added = transact(verb)
    if as_json:
        show.as_json(added)
        return
    say(f"Added item {added.id} to {found.plan}.")


def pause(name: Name, reason: Reason = "", by: Actor = None, as_json: AsJson = False) -> None:
    """Pause a schedule: it ticks no more until it is resumed.

    \b
    Example: relevo schedule pause backup --reason "the disk is full"
    """
    from ordering import schedule

    found = transact(lambda tx: schedule.pause(tx, name, actor=actor(by), reason=reason))
    answer(found, "Schedule {name} is paused.", as_json=as_json)


def resume(name: Name, reason: Reason = "", by: Actor = None, as_json: AsJson = False) -> None:
    """Resume a schedule: it ticks again, from now on.

    \b
    Example: relevo schedule resume backup
    """
    from ordering import schedule

    found = transact(lambda tx: schedule.resume(tx, name, actor=actor(by), reason=reason))
    answer(found, "Schedule {name} ticks.", as_json=as_json)


def remove(name: Name, reason: Reason = "", by: Actor = None, as_json: AsJson = False) -> None:
    """Remove a schedule. The items that it has added stay.

    \b
    Example: relevo schedule remove backup
    """
    from ordering import schedule

    found = transact(lambda tx: schedule.remove(tx, name, actor=actor(by), reason=reason))
    answer(found, "Removed schedule {name}.", as_json=as_json)
    if not as_json and found.name in (in_catalogue() or ()):
        say("The catalogue still has it, so `relevo up`, `relevo worker` and `relevo run-all` make it again.")
