"""Commands on the platform: up, down, status, and its services one by one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app import show
from app.cli_call import AsJson, database, database_url, say, settings

if TYPE_CHECKING:
    from app.platform import Status

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


Detach = Annotated[bool, typer.Option("--detach", "-d", help="Return when everything is ready, and leave it running.")]


def up(detach: Detach = False) -> None:
    """Bring the platform up.

    The database and the broker where none are configured, then feeder, worker, the HTTP server and the exporter.
    It runs until Ctrl-C, restarts what dies, and stops everything gracefully.

    \b
    Example: relevo up --detach
    """
    from app import platform

    given = settings()
    code = platform.up(given, detach)
    if detach:
        say(f"The platform is up{platform.board(given)}; `relevo status` shows it, `relevo down` stops it.")
    raise typer.Exit(code)


def down() -> None:
    """Stop the platform.

    What runs may end for a while, then all of it is gone. Plans and items stay.

    \b
    Example: relevo down
    """
    from app import platform

    say("The platform is down." if platform.down(settings()) else "No platform is up; there was nothing to stop.")


def status(as_json: AsJson = False) -> None:
    """Show what runs here and whether it answers.

    Ends with 0 when all is well, else with 3.

    \b
    Example: relevo status
    """
    from app import platform

    found = platform.status(settings())
    if as_json:
        show.as_json(found)
    else:
        _print(found)
    raise typer.Exit(found.exit_code)


def _print(found: Status) -> None:
    say(f"The platform is {found.state}" + (f" since {found.since}" if found.since else "") + f" (home {found.home}).")
    shown = {"http": found.url, "metrics": found.metrics_url, "database": found.database_url, "broker": found.broker_url, "log": found.log}
    for name, value in shown.items():
        if value:
            say(f"  {name}: {value}")
    if found.services:
        columns = ("service", "state", "process", "since", "restarts")
        show.table(columns, ((each.name, each.state, each.pid or "", each.since, each.restarts) for each in found.services))
    for problem in found.problems:
        say(problem)


def migrate() -> None:
    """Bring the database to the current schema.

    Any number of times, by anybody at once; `relevo up` does it too.

    \b
    Example: relevo migrate
    """
    from ordering import db

    db.migrate(database_url(settings()))
    say("The database has the current schema.")


def reconcile() -> None:
    """Mark what has no process behind it any more.

    Feeders do this every second; this does it once, now.

    \b
    Example: relevo reconcile
    """
    from ordering.reconcile import reconcile
    from workers.process import alive

    with database() as engine:
        lost = reconcile(engine, alive)
    say(f"{lost} lost {'process was' if lost == 1 else 'processes were'} found; what they ran is marked.")


def worker(context: typer.Context) -> None:
    """Run a worker in the foreground.

    It runs what the feeders hand out, and brings the catalogue's schedules into the database. `relevo worker --help` lists its options.

    \b
    Example: relevo worker --slots 8
    """
    if "--help" not in context.args:
        from app.declare import declare_all
        from ordering import schema

        given = settings()
        with database(given) as engine:
            schema.check_at(engine)
            declare_all(engine, given.catalogue)
    _become(["-m", "workers.worker"], context.args)


def feeder(context: typer.Context) -> None:
    """Run a feeder in the foreground.

    It hands out heads and marks what was lost. Any number of them is safe.

    \b
    Example: relevo feeder
    """
    _become(["-m", "workers.feeder"], context.args)


def flower(context: typer.Context) -> None:
    """Run Flower in the foreground.

    It shows what passes through the broker, and changes nothing. `relevo flower --help` lists its options.

    \b
    Example: RELEVO_FLOWER_AUTH=me:secret relevo flower --host 0.0.0.0
    """
    _become(["-m", "workers.flower"], context.args)


def serve(
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="Where to listen, instead of RELEVO_HOST.")] = None,
    port: Annotated[int | None, typer.Option("--port", metavar="PORT", help="Where to listen, instead of RELEVO_PORT.")] = None,
) -> None:
    """Run the HTTP server in the foreground.

    It serves the API. Without RELEVO_TOKENS_FILE it serves this machine only.

    \b
    Example: relevo serve --port 8080
    """
    from app.launch import SERVING

    for name, value in (("RELEVO_HOST", host), ("RELEVO_PORT", port)):
        if value is not None:
            os.environ[name] = str(value)
    _become([str(SERVING)])


def exporter(
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="Where to listen, instead of RELEVO_EXPORTER_HOST.")] = None,
    port: Annotated[int | None, typer.Option("--port", metavar="PORT", help="Where to listen, instead of RELEVO_EXPORTER_PORT.")] = None,
) -> None:
    """Run the exporter in the foreground.

    It serves the signals to Prometheus, at /metrics. Any number of them is safe: they say the same.

    \b
    Example: relevo exporter --port 9464
    """
    from app.launch import EXPORTING

    for name, value in (("RELEVO_EXPORTER_HOST", host), ("RELEVO_EXPORTER_PORT", port)):
        if value is not None:
            os.environ[name] = str(value)
    _become([str(EXPORTING)])


def _become(program: list[str], arguments: Sequence[str] = ()) -> Any:
    """Replace this process by the service: signals, exit code and output are its own, and what it does not need is gone."""
    from app import environment, platform

    given = settings()
    urls = ("", "") if "--help" in arguments else platform.urls(given)
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-P", *program, *arguments], environment.of_service(given, *urls))
