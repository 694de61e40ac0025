"""Commands that run a catalogue: run-all, repair-all; and their wait for the end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from app.cli_call import INTERRUPTED, Actor, actor, database, say, settings
from app.cli_errors import WorkFailed, tell
from ordering.errors import MayStillRun, PlanBlocked, RelevoError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from workers.settings import Settings

T = TypeVar("T")
LET_GO = 8.0  # seconds that repair-all waits for a process that may still live: it has 5 to come back, and a round is a second

CatalogueOption = Annotated[
    Path | None, typer.Option("--catalogue", metavar="FILE", help="The catalogue; RELEVO_CATALOGUE or relevo.toml if left out.")
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for the end: 0 if all went well, 1 with what failed.")]


@dataclass(frozen=True)
class Following:
    """A run to be waited for."""

    plan: str
    run_id: int
    since: datetime


def run_all(
    plan: Annotated[str | None, typer.Argument(metavar="[PLAN]", help="A plan of the catalogue; every one if left out.")] = None,
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="Only these entries, in this order.")] = None,
    wait: Wait = False,
    catalogue: CatalogueOption = None,
    by: Actor = None,
) -> None:
    """Add a catalogue's entries in their order, and start.

    What is in the line, out or unresolved already is not added again. Brings the platform up first if it is not.

    \b
    Examples:
      relevo run-all --wait
      relevo run-all nightly audit-deps lint
    """
    from app import catalogue as catalogues
    from app.run_all import AllAdded, run_all
    from ordering import clock, db

    given = _settings(catalogue)
    loaded = catalogues.load(given.catalogue)
    chosen = [loaded.plan(plan)] if plan is not None else list(loaded.plans.values())

    def one(engine: Engine, name: str) -> Following | None:
        done: AllAdded
        done, now = db.transact(engine, lambda tx: (run_all(tx, loaded.plan(name), keys or (), actor=actor(by)), clock.now(tx)))
        for left in done.left:
            say(f"{name}: {left.key} is not added: {left.why}.")
        say(f"{name}: added {len(done.added)} of {len(done.added) + len(done.left)} entries; run {done.run.id} is on.")
        return Following(name, done.run.id, now)

    _each(given, [each.name for each in chosen], one, wait)


def repair_all(
    plan: Annotated[str | None, typer.Argument(metavar="[PLAN]", help="A plan; every one of the catalogue if left out.")] = None,
    wait: Wait = False,
    catalogue: CatalogueOption = None,
    by: Actor = None,
) -> None:
    """Repair what failed or was interrupted, and go on.

    The repair of each is added at the front and the failed item decided.
    An entry without a repair runs again itself. Where nothing is unresolved, nothing changes.

    \b
    Example: relevo repair-all nightly --wait
    """
    from app import catalogue as catalogues
    from app.repair_all import AllRepaired, repair_all
    from ordering import clock

    given = _settings(catalogue)
    loaded = catalogues.load(given.catalogue)
    names = [plan] if plan is not None else list(loaded.plans)

    def one(engine: Engine, name: str) -> Following | None:
        done: AllRepaired
        done, now = _once_let_go(engine, lambda tx: (repair_all(tx, name, loaded.plans.get(name), actor=actor(by)), clock.now(tx)))
        for each in done.repaired:
            say(f"{name}: item {each.item} " + ("runs again." if each.by == each.item else f"is repaired by item {each.by}."))
        if done.run is None:
            say(f"{name}: nothing is unresolved; nothing was changed.")
            return None
        return Following(name, done.run.id, now)

    _each(given, names, one, wait)


def _once_let_go(engine: Engine, verb: Callable[[Connection], T]) -> T:
    """What `verb` returns in a transaction of its own; a process that may still run an item is waited for. Raises MayStillRun."""
    from ordering import db

    deadline = time.monotonic() + LET_GO
    while True:
        try:
            return db.transact(engine, verb)
        except MayStillRun:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.5)


def _settings(catalogue: Path | None) -> Settings:
    """The settings of this call, with the catalogue it names: workers that are brought up load that one."""
    if catalogue is not None:
        os.environ["RELEVO_CATALOGUE"] = str(catalogue)
    return settings()


def _each(given: Settings, names: Sequence[str], one: Callable[[Engine, str], Following | None], wait: bool) -> None:
    """Bring the platform up, do `one` for each plan and wait for them; a plan that fails does not keep the others from theirs."""
    if given.database_url is None or given.broker_url is None:
        from app import platform

        if platform.ensure_up(given):
            say(f"The platform is up and stays up{platform.board(given)}; `relevo down` stops it (home {given.home}).")
    failures: list[RelevoError] = []
    with database(given) as engine:
        following: list[Following] = []
        for name in names:
            try:
                found = one(engine, name)
            except (PlanBlocked, MayStillRun) as error:
                failures.append(error)
            else:
                following += [found] if found is not None else []
        if wait:
            failures += _wait(engine, following)
    for failure in failures[:-1]:
        tell(failure)
    if failures:
        raise failures[-1]


def _wait(engine: Engine, following: Sequence[Following]) -> list[RelevoError]:
    from app.follow import Follower, follow, verdict
    from app.progress import shown

    failures: list[RelevoError] = []
    try:
        for each in following:
            with shown(each.plan) as watch:
                look = follow(engine, Follower(each.plan, each.run_id, each.since), watch)
            against = verdict(look)
            if against is None:
                say(f"{each.plan}: done, {look.done} of {look.total}.")
            else:
                failures.append(WorkFailed(against))
    except KeyboardInterrupt:
        say("No longer watched; the plan goes on (`relevo plan list` shows it, `relevo pause PLAN` pauses it).")
        raise typer.Exit(INTERRUPTED) from None
    return failures
