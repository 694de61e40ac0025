"""The command line: `relevo COMMAND`. Each command is one function in one of the `cli_...` files."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.main import get_command

from app import (
    cli_add,
    cli_dead,
    cli_dead_decide,
    cli_facts,
    cli_healthy,
    cli_items,
    cli_plan,
    cli_platform,
    cli_run,
    cli_schedule,
    cli_schedule_show,
    cli_show,
    cli_signals,
    cli_token,
    cli_undo,
    cli_words,
    out,
    release,
)
from app.cli_call import DONE, INTERRUPTED, WRONG
from app.cli_errors import tell

HELP = """Run plans: ordered lists of work that people curate by hand, one item after the other.

\b
  relevo up --detach                                bring everything up
  relevo plan create nightly                        make a plan
  relevo add nightly shell '{"command": ["make"]}'  add work to it
  relevo start nightly                              let it run
  relevo plan show nightly                          see where it stands

Exit codes: 0 done, 1 the work failed or is unresolved, 2 the call is wrong, 3 a service is unreachable, 130 Ctrl-C.
"""

PANELS: dict[str, dict[str, Any]] = {
    "Platform": {
        "up": cli_platform.up,
        "down": cli_platform.down,
        "status": cli_platform.status,
        "signals": cli_signals.signals,
        "workers": cli_signals.workers,
    },
    "Plans": {"start": cli_plan.start, "pause": cli_plan.pause, "run-all": cli_run.run_all, "repair-all": cli_run.repair_all},
    "Items": {
        "add": cli_add.add,
        "show": cli_show.show_,
        "move": cli_items.move,
        "edit": cli_items.edit,
        "postpone": cli_items.postpone,
        "cancel": cli_items.cancel,
        "undo": cli_undo.undo,
    },
    "Decisions on failed and interrupted items": {"retry": cli_items.retry, "skip": cli_items.skip, "resolve": cli_items.resolve},
    "Facts": {
        "emit": cli_facts.emit,
        "facts": cli_facts.facts,
        "fact": cli_facts.fact,
        "subscriptions": cli_facts.subscriptions,
        "unsubscribe": cli_facts.unsubscribe,
    },
    "Services, where `up` does not run them": {
        "worker": cli_platform.worker,
        "feeder": cli_platform.feeder,
        "serve": cli_platform.serve,
        "flower": cli_platform.flower,
        "healthy": cli_healthy.healthy,
        "exporter": cli_platform.exporter,
        "reconcile": cli_platform.reconcile,
        "migrate": cli_platform.migrate,
    },
}

SCHEDULE: dict[str, Any] = {
    "create": cli_schedule.create,
    "list": cli_schedule_show.list_,
    "show": cli_schedule_show.show_,
    "edit": cli_schedule.edit,
    "pause": cli_schedule.pause,
    "resume": cli_schedule.resume,
    "remove": cli_schedule.remove,
    "add": cli_schedule.add,
}

DEAD: dict[str, Any] = {
    "list": cli_dead.list_,
    "show": cli_dead.show_,
    "retry": cli_dead_decide.retry,
    "skip": cli_dead_decide.skip,
    "resolve": cli_dead_decide.resolve,
}


def _version(wanted: bool) -> None:
    if wanted:
        out.write(f"relevo {release.version()}\n")
        raise typer.Exit(0)


def _top(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    """Options of `relevo` itself."""


def _app() -> typer.Typer:
    app = typer.Typer(name="relevo", no_args_is_help=True, rich_markup_mode="rich", pretty_exceptions_enable=False)
    app.callback(help=HELP)(_top)
    plan = typer.Typer(help="Create, edit, list and show plans.", no_args_is_help=True)
    of_plan: dict[str, Any] = {"create": cli_plan.create, "edit": cli_plan.edit, "list": cli_plan.list_, "show": cli_plan.show_}
    for name, function in of_plan.items():
        plan.command(name)(function)
    app.add_typer(plan, name="plan", rich_help_panel="Plans")
    schedule = typer.Typer(help="Add items by the clock: cron expressions with time zones.", no_args_is_help=True)
    for name, function in SCHEDULE.items():
        schedule.command(name)(function)
    app.add_typer(schedule, name="schedule", rich_help_panel="Plans")
    dead = typer.Typer(help="Dead letters of streams: list, show and decide them, many at once.", no_args_is_help=True)
    for name, function in DEAD.items():
        dead.command(name)(function)
    app.add_typer(dead, name="dead", rich_help_panel="Decisions on failed and interrupted items")
    token = typer.Typer(help="Tokens for the HTTP API.", no_args_is_help=True)
    token.command("create")(cli_token.create)
    app.add_typer(token, name="token", rich_help_panel="Services, where `up` does not run them")
    for panel, commands in PANELS.items():
        for name, function in commands.items():
            passes_on = name in ("worker", "feeder", "flower")
            app.command(name, rich_help_panel=panel, context_settings=cli_platform.PASSED_ON if passes_on else None)(function)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. Whatever goes wrong is told in one sentence on stderr."""
    from typer import Abort
    from typer.exceptions import TyperException

    try:
        cli_words.check(arguments)
        code = get_command(_app()).main(list(arguments), prog_name="relevo", standalone_mode=False)
        lost = out.lost()
        if lost is not None and code in (None, DONE):
            raise out.Unwritten(lost)
        return code if isinstance(code, int) else DONE
    except TyperException as error:
        return _usage(error)
    except (Abort, KeyboardInterrupt):
        return INTERRUPTED
    except Exception as error:  # the last handler: a traceback is no answer
        return tell(error)


def _usage(error: Any) -> int:
    """Say what is wrong with the call, and where the help is."""
    context = getattr(error, "ctx", None)
    said = error.format_message() if hasattr(error, "format_message") else str(error)
    if type(error).__name__ != "NoArgsIsHelpError":
        command = context.command_path if context is not None else "relevo"
        said = " ".join(said.replace("Value error, ", "").split()).rstrip(".")
        sys.stderr.write(f"relevo: {said}; `{command} --help` tells more.\n")
    return WRONG


def main() -> None:
    """The console script."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # so that what has begun ends in order
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        out.install()
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # just before its first act, or just behind its last
        code = INTERRUPTED
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is done is told as done
    sys.exit(code)


if __name__ == "__main__":
    main()
