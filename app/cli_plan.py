"""Commands on plans: create, list, show, start, pause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from app import show
from app.cli_call import Actor, AsJson, PlanName, Reason, actor, say, transact
from app.lasting import lasting
from ordering.model import OnFailure, OnInterrupt, State

if TYPE_CHECKING:
    from datetime import datetime

    from ordering.lines import ItemLine
    from ordering.views import PlanView

OnFailureOption = Annotated[OnFailure | None, typer.Option("--on-failure", help="At a failure: wait for a person, or let the next one go.")]
OnInterruptOption = Annotated[
    OnInterrupt | None, typer.Option("--on-interrupt", help="When its process is lost: wait for a person, or run it again.")
]
TriesOption = Annotated[int | None, typer.Option("--max-attempts", min=1, max=1000, metavar="N", help="How many tries it has.")]
KeepOption = Annotated[str | None, typer.Option("--keep", metavar="TIME", help="How long what is settled stays: 30d (the default), 12h.")]
RateOption = Annotated[str | None, typer.Option("--rate", metavar="RATE", help="A stream's items: 10/s, 100/m, 5/h, or none.")]
TitleOption = Annotated[str, typer.Option("--title", metavar="TEXT", help="What people read in the list.")]


def create(
    name: Annotated[str, typer.Argument(metavar="PLAN", help="Its name: a-z, 0-9, dot, dash and underscore.")],
    title: TitleOption = "",
    concurrency: Annotated[int, typer.Option(min=1, max=10_000, help="1 is a plan in order; more is a stream.")] = 1,
    on_failure: OnFailureOption = None,
    on_interrupt: OnInterruptOption = None,
    max_attempts: TriesOption = None,
    autostart: Annotated[bool, typer.Option("--autostart", help="Start by itself when something is added.")] = False,
    stop_grace: Annotated[str, typer.Option(metavar="TIME", help="How long a stopping worker lets a body go on.")] = "10s",
    keep: KeepOption = None,
    rate: RateOption = None,
    by: Actor = None,
) -> None:
    """Create a plan.

    A plan is a named, ordered list of items that run one after the other.

    \b
    Example: relevo plan create nightly --title "Every night" --on-failure continue
    """
    from app.given import duration
    from ordering import plans
    from ordering.rate import parse

    grace = duration("--stop-grace", stop_grace)
    kept = plans.KEEP if keep is None else duration("--keep", keep)
    limit = None if rate is None else parse(rate)
    transact(
        lambda tx: plans.create(
            tx,
            name,
            actor=actor(by),
            title=title,
            concurrency=concurrency,
            on_failure=on_failure or OnFailure.HALT,
            on_interrupt=on_interrupt,
            max_attempts=max_attempts,
            autostart=autostart,
            stop_grace=grace,
            keep=kept,
            rate=limit,
        )
    )
    say(f"Created plan {name}.")


def edit(
    plan: PlanName,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="What people read in the list.")] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, max=10_000, metavar="N", help="How many of a stream's may be out.")
    ] = None,
    on_failure: OnFailureOption = None,
    on_interrupt: OnInterruptOption = None,
    max_attempts: TriesOption = None,
    autostart: Annotated[bool | None, typer.Option("--autostart/--no-autostart", help="Start by itself when something is added.")] = None,
    stop_grace: Annotated[
        str | None, typer.Option("--stop-grace", metavar="TIME", help="How long a stopping worker lets a body go on.")
    ] = None,
    keep: KeepOption = None,
    rate: RateOption = None,
    by: Actor = None,
) -> None:
    """Change a plan's settings.

    What is left out stays as it is; a run that is on keeps its policy at a failure.

    \b
    Example: relevo plan edit notifications --concurrency 16 --rate 100/m
    """
    from app.given import duration
    from ordering import plan_edit, plans
    from ordering.errors import Invalid
    from ordering.rate import parse

    change = {
        "title": title,
        "concurrency": concurrency,
        "on_failure": on_failure,
        "on_interrupt": on_interrupt,
        "max_attempts": max_attempts,
        "autostart": autostart,
        "stop_grace": None if stop_grace is None else duration("--stop-grace", stop_grace),
        "keep": None if keep is None else duration("--keep", keep),
    }
    given: dict[str, Any] = {name: value for name, value in change.items() if value is not None}
    if rate is not None:
        given["rate"] = parse(rate)
    if not given:
        raise Invalid("edit", f"changes nothing; give at least one of {', '.join(plan_edit.EDITABLE)}.")
    transact(lambda tx: plan_edit.edit(tx, plans.lock_by_name(tx, plan), given, actor=actor(by)))
    say(f"Plan {plan} is changed.")


def list_(as_json: AsJson = False) -> None:
    """List the plans and what each is doing.

    \b
    Example: relevo plan list
    """
    from ordering import views

    found = transact(views.plans)
    if as_json:
        show.as_json(*found)
        return
    columns = ("plan", "status", "waiting", "out", "postponed", "unresolved", "succeeded", "head", "title")
    show.table(columns, (_summary(plan) for plan in found))


def _summary(plan: PlanView) -> tuple[object, ...]:
    counts = plan.counts
    out = counts[State.DISPATCHED] + counts[State.RUNNING]
    head = "" if plan.head is None else f"{plan.head.id} {plan.head.state}"
    return (
        plan.name, plan.status, counts[State.WAITING], out, counts[State.POSTPONED], plan.unresolved, counts[State.SUCCEEDED],
        head, plan.title,
    )  # fmt: skip


def show_(
    plan: PlanName,
    limit: Annotated[int, typer.Option("--limit", min=0, max=10_000, help="How many items of each list.")] = 20,
    cursor: Annotated[str | None, typer.Option("--after", metavar="CURSOR", help="Go on where the page before ended.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show one plan and its items.

    Its run, what is out, what waits for a decision, the line in its order, and what ended last.

    \b
    Example: relevo plan show nightly --limit 50
    """
    from sqlalchemy import Connection

    from ordering import clock, lines, views

    begin = None if cursor is None else lines.Cursor.parse(cursor)

    def read(tx: Connection) -> dict[str, object]:
        found = views.plan(tx, plan)
        page = lines.waiting(tx, found.id, limit=limit, after=begin)
        return {
            "plan": found,
            "now": clock.now(tx),
            "out": lines.out(tx, found.id, limit=limit),
            "unresolved": lines.unresolved(tx, found.id, limit=limit),
            "line": page.items,
            "next": None if page.next is None else str(page.next),
            "postponed": lines.postponed(tx, found.id, limit=limit),
            "settled": lines.settled(tx, found.id, limit=limit),
        }

    read_all = transact(read)
    if as_json:
        show.as_json(read_all)
    else:
        _print(**read_all)  # type: ignore[arg-type]


def _print(
    plan: PlanView,
    now: datetime,
    out: list[ItemLine],
    unresolved: list[ItemLine],
    line: list[ItemLine],
    next: str | None,
    postponed: list[ItemLine],
    settled: list[ItemLine],
) -> None:
    counts = ", ".join(f"{count} {state}" for state, count in plan.counts.items() if count) or "empty"
    run = ""
    if plan.run is not None:
        run = f"; run {plan.run.id} ({plan.run.on_failure}) since {show.when(plan.run.started_at)} by {plan.run.started_by}"
    say(f"{plan.name}: {plan.status} ({counts}){run}")
    say(f"What is settled stays for {lasting(plan.keep)}." + (f" At most {plan.rate} are handed out." if plan.rate else ""))
    for title, listed in (("Out", out), ("Unresolved", unresolved), ("Line", line), ("Postponed", postponed), ("Ended last", settled)):
        if listed:
            say("")
            show.table(
                ("item", "state", "since", "tries", "kind", "title", "note"), (_row(each, now) for each in listed), title=f"{title}:"
            )
    if next is not None:
        say(f"More of the line: relevo plan show {plan.name} --after {next}")


def _row(item: ItemLine, now: datetime) -> tuple[object, ...]:
    note = f"not before {show.when(item.not_before)}" if item.not_before else (item.error or "")
    return item.id, item.state, show.ago(item.since, now), item.tries or "", item.kind, item.title or f"{item.task} {item.arguments}", note


def start(plan: PlanName, on_failure: OnFailureOption = None, by: Actor = None) -> None:
    """Start a plan.

    Its items go out one after the other until nothing is left. Refused while something is unresolved.

    \b
    Example: relevo start nightly --on-failure continue
    """
    from ordering import plans

    run = transact(lambda tx: plans.start(tx, plan, actor=actor(by), on_failure=on_failure))
    say(f"Plan {plan} {'started' if run.opened else 'is running'} (run {run.id}, on failure: {run.on_failure}).")


def pause(plan: PlanName, reason: Reason = "", by: Actor = None) -> None:
    """Pause a plan.

    What is out goes on to its end, nothing more is handed out. `relevo start` lets it go on.

    \b
    Example: relevo pause nightly --reason "deploying"
    """
    from ordering import plans

    transact(lambda tx: plans.pause(tx, plan, actor=actor(by), reason=reason))
    say(f"Plan {plan} is paused.")
