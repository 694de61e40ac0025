"""What schedules look like on the command line: the list, one with its next ticks, and the answer to what changed one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from app import show
from app.cli_call import AsJson, say, settings, transact

if TYPE_CHECKING:
    from datetime import datetime

    from ordering.schedule import Schedule

Name = Annotated[str, typer.Argument(metavar="SCHEDULE", help="The schedule's name.")]


def list_(
    plan: Annotated[str | None, typer.Option("--plan", metavar="PLAN", help="Only those that add to this plan.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the schedules and when each ticks next.

    \b
    Example: relevo schedule list --plan nightly
    """
    from app import known_tasks
    from ordering import schedule

    found, known = transact(lambda tx: (schedule.list_(tx, plan=plan), known_tasks.names(tx)))
    if as_json:
        show.as_json(*found)
        return
    declared = in_catalogue()
    columns = ("schedule", "plan", "cron", "time zone", "next", "last", "missed", "task", "note")
    show.table(
        columns,
        (
            (each.name, each.plan, each.cron, each.timezone, _next(each), show.when(each.last_at), each.missed, each.task,
             _note(each, declared, known))
            for each in found
        ),
    )  # fmt: skip


def _next(found: Schedule) -> str:
    return "" if found.paused else show.when(found.next_at)


def show_(name: Name, as_json: AsJson = False) -> None:
    """Show one schedule and its next ticks.

    \b
    Example: relevo schedule show backup
    """
    from app import known_tasks
    from ordering import schedule

    found, known = transact(lambda tx: (schedule.get(tx, name), known_tasks.names(tx)))
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
        "note": _note(found, in_catalogue(), known),
    }
    for title, value in fields.items():
        if value:
            say(f"  {title}: {value}")
    _ticks(found)


def answer(found: Schedule, sentence: str, *, as_json: bool) -> None:
    """Print the sentence, which may name the schedule, and its next ticks; or the schedule as JSON."""
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


def in_catalogue() -> set[str] | None:
    """The names of the schedules in the catalogue, or None where there is none that can be read."""
    from app import catalogue
    from app.fields import BadInput

    try:
        found = catalogue.load(settings().catalogue)
    except BadInput:
        return None
    return {each.name for plan in found.plans.values() for each in plan.schedules}


def _note(found: Schedule, declared: set[str] | None, known: set[str]) -> str:
    notes = [
        "paused" if found.paused else "",
        f"cannot tick: {found.problem}" if found.problem else "",
        "" if found.problem or not found.overdue else f"due since {show.when(found.next_at)}, and no feeder ticks or its plan is locked",
        "" if found.task in known else "no worker has offered its task",
        "not in the catalogue any more" if found.declared and declared is not None and found.name not in declared else "",
    ]
    return "; ".join(filter(None, notes))
