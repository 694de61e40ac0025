"""The command `token create`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.cli_call import say, settings


class RoleName(StrEnum):
    """What a caller may do; each may also do what those before it may."""

    VIEW = "view"
    OPERATE = "operate"
    ADMIN = "admin"


def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who will use it; the trail has this name.")],
    role: Annotated[RoleName, typer.Option("--role", help="view: read; operate: change; admin: also run commands by `shell` items.")],
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="The tokens file, instead of RELEVO_TOKENS_FILE.")] = None,
) -> None:
    """Make a token for the HTTP API and print it, once.

    The tokens file keeps its hash. To take it back, remove its line; a running server notices both.

    \b
    Example: relevo token create ci --role operate
    """
    from app import tokens
    from app.caller import Role
    from workers.settings import SettingsError

    path = file.absolute() if file is not None else settings().tokens_file
    if path is None:
        raise SettingsError("RELEVO_TOKENS_FILE is not set: set it to the file for the tokens, or give --file.")
    say(tokens.create(path, name, Role[role.name]))
    sys.stderr.write(f"It is shown this once; {path} keeps its hash. Servers with RELEVO_TOKENS_FILE={path} take it from now on.\n")
