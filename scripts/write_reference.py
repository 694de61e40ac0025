"""Write the pages of the reference that the code says better: the commands with their options, and the board's addresses.

Usage: python scripts/write_reference.py [--check]     --check writes nothing and ends with 1 if a page is not as it would be written
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
REFERENCE = ROOT / "docs" / "reference"
HEAD = """# Commands

<!-- Written by scripts/write_reference.py from the code: `make reference` renews it. -->

Every command has `--help` with an example. `--json` prints JSON, one object a line for lists.

Exit codes: 0 done, 1 the work failed or is unresolved, 2 the call is wrong, 3 a service is unreachable. An error is one sentence on stderr.
An answer that cannot be written (a full disk) is 1 where it would have been 0, and what was changed stays changed. Where nobody reads the
answer (`| head -1`) the command does all its work, waits for what `--wait` says, and ends with its own code. Ctrl-C is 130 and TERM 143:
what a command adds, emits or decides is then done whole or not at all, but for many dead letters, which are decided 500 at a time.
Words that hold bytes outside UTF-8, or outside the terminal's encoding, are refused, names of files too.
"""
NOTED = {"--json", "--actor"}  # the same everywhere; told once
COMMON = """
Where a command has them, two options mean the same everywhere:

| option | what it does |
|---|---|
| `--json` | Print JSON, one object a line, for programs. |
| `--actor NAME` | Who does this, for the trail; the system's user if left out. |
"""


def commands() -> Iterator[tuple[str, str, Any]]:
    """Panel, whole name and command of each command, in the order of `relevo --help`."""
    from typer.main import get_command

    from app import cli

    yield from _walk(get_command(cli._app()), "relevo", "")


def _walk(group: Any, path: str, panel: str) -> Iterator[tuple[str, str, Any]]:
    for name, command in group.commands.items():
        where = panel or command.rich_help_panel or ""
        if hasattr(command, "commands"):
            yield from _walk(command, f"{path} {name}", where)
        else:
            yield where, f"{path} {name}", command


def options(name: str, command: Any) -> list[tuple[str, str]]:
    """Each option of a command as it is written, and what it does."""
    from workers import flower, worker

    # They pass everything on to their service, which has its own parser.
    own = {"relevo worker": worker.parser, "relevo flower": flower.parser}.get(name)
    if own is not None:
        return [_parsed(each) for each in own()._actions if each.help != argparse.SUPPRESS and each.dest != "help"]
    return [_declared(each) for each in command.params if not _is_argument(each) and not each.hidden]


def _is_argument(parameter: Any) -> bool:
    return type(parameter).__name__ == "TyperArgument"


def _parsed(action: argparse.Action) -> tuple[str, str]:
    default = f" Default: {action.default}." if action.default is not None else ""
    metavar = action.metavar or ("N" if action.type is int else "TEXT")
    said = str(action.help)
    return f"{action.option_strings[0]} {metavar}", f"{said[0].upper()}{said[1:]}.{default}"


def _declared(option: Any) -> tuple[str, str]:
    written = ", ".join([*option.opts, *option.secondary_opts])
    kind = option.type_descriptor.annotation
    default = option.default
    said = str(option.help)
    if isinstance(kind, type) and issubclass(kind, Enum):
        written += " WORD"
        said += f" One of: {', '.join(str(each.value) for each in kind)}."
    elif not option.is_flag:
        written += f" {option.metavar or ('N' if kind is int else 'TEXT')}"
    if option.required:
        said += " Required."
    elif not option.is_flag and default not in (None, "", (), []):
        said += f" Default: {default.value if isinstance(default, Enum) else default}."
    return written, said


def cli_page() -> str:
    """The page of the commands."""
    text, last = HEAD + COMMON, None
    for panel, name, command in sorted(commands(), key=_panel_order()):
        if panel != last:
            text += f"\n## {panel}\n"
            last = panel
        text += _section(name, command)
    return text


def _panel_order() -> Any:
    from app import cli

    order = {panel: number for number, panel in enumerate(cli.PANELS)}
    return lambda each: order.get(each[0], len(order))


def _section(name: str, command: Any) -> str:
    words = [each.metavar or each.name.upper() for each in command.params if _is_argument(each)]
    body, _, examples = str(command.help).partition("\b\n")
    text = f"\n### {' '.join([name, *words])}\n\n{body.strip()}\n"
    rows = [(each.metavar or each.name.upper(), str(each.help)) for each in command.params if _is_argument(each) and each.help]
    rows += [each for each in options(name, command) if each[0].split()[0] not in NOTED]
    if rows:
        text += "\n| | |\n|---|---|\n" + "".join(f"| `{_cell(written)}` | {_cell(said)} |\n" for written, said in rows)
    noted = [f"`{each[0]}`" for each in options(name, command) if each[0].split()[0] in NOTED]
    if noted:
        text += f"\nAlso {' and '.join(noted)}.\n"
    lines = [line.strip() for line in examples.replace("Examples:", "").replace("Example:", "").splitlines()]
    return text + "\n```sh\n" + "".join(f"{line}\n" for line in lines if line) + "```\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


BOARD = """# The board's addresses

<!-- Written by scripts/write_reference.py from the code: `make reference` renews it. -->

The board is served beside the [HTTP API](../http.md), to whoever may call that. Each page is HTML and works without script; each act is
a form that is answered with the page it came from, or with one sentence that says why not. Programs use the API.

| address | what it does |
|---|---|
"""


def all_routes(routes: Iterable[Any]) -> Iterator[APIRoute]:
    """The routes, those of included routers too."""
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "original_router"):
            yield from all_routes(route.original_router.routes)


def application() -> FastAPI:
    """The HTTP application with all its routes, of which nothing is called."""
    from app import web
    from app.health import Readiness
    from ordering import db

    nowhere = db.engine("postgresql://nobody@127.0.0.1:1/none")
    found: Any = web.application(nowhere, Readiness({"database": lambda: None}), lambda _: None, only_loopback=True)  # type: ignore[arg-type]
    while not isinstance(found, FastAPI):
        found = getattr(found, "app", None) or found._app
    return found


def board_page() -> str:
    """The page of the board's addresses."""
    rows = []
    for route in all_routes(application().routes):
        if not route.include_in_schema:  # the others are the API's
            said = (route.endpoint.__doc__ or "").partition("\n")[0]
            rows += [f"| `{method} {route.path}` | {_cell(said)} |\n" for method in sorted((route.methods or set()) - {"HEAD"})]
    return BOARD + "".join(rows)


PAGES: dict[str, Callable[[], str]] = {"cli.md": cli_page, "board.md": board_page}


def main() -> int:
    stale = {name: text for name, write in PAGES.items() if (REFERENCE / name).read_text(encoding="utf-8") != (text := write())}
    for name, text in stale.items():
        if "--check" in sys.argv:
            print(f"docs/reference/{name} is not what the code says: `make reference` renews it.")
        else:
            (REFERENCE / name).write_text(text, encoding="utf-8")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
