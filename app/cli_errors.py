"""How a call ends that did not work: one sentence on stderr and the exit code that tells what kind of trouble it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from app.cli_call import FAILED, UNREACHABLE, WRONG
from ordering.errors import DatabaseUnreachable, MayStillRun, PlanBlocked, RelevoError

if TYPE_CHECKING:
    from sqlalchemy.exc import DBAPIError


class WorkFailed(RelevoError):
    """What was waited for ended without success, or waits for a person; the message names what failed."""


class Gone(RelevoError):
    """What was waited for cannot go on, since a service does not answer."""


def told(error: Exception) -> tuple[str, int]:
    """The sentence for `error`, and the exit code."""
    from sqlalchemy.exc import DBAPIError

    match error:
        case PlanBlocked() | MayStillRun() | WorkFailed():
            return str(error), FAILED
        case DatabaseUnreachable() | Gone():
            return str(error), UNREACHABLE
        case RelevoError():
            return str(error), getattr(error, "exit_code", WRONG)  # the platform's errors know their own
        case DBAPIError():
            return _database(error)
        case UnicodeEncodeError():
            return "The call holds bytes that are no text; write it in UTF-8.", WRONG
        case OSError():
            named = f" {error.filename}" if error.filename else ""
            return f"The system refused{named}: {error.strerror or error}.", WRONG
        case _:
            return f"Relevo has a defect: {type(error).__name__}: {error}. Please report it with what you called.", FAILED


def tell(error: Exception) -> int:
    """Print the sentence for `error` on stderr; the exit code."""
    from app.terminal_text import one_line

    sentence, code = told(error)
    sys.stderr.write(f"relevo: {one_line(sentence, 20_000)}\n")
    for line in getattr(error, "lines", ()):  # what a service that did not start said last
        sys.stderr.write(f"    {one_line(line)}\n")
    return code


def _database(error: DBAPIError) -> tuple[str, int]:
    from ordering import db

    state, said = db.sqlstate(error), db.said(error)
    if state in ("3F000", "42P01", "42703"):
        return f"The database has no current schema of Relevo ({said}); run `relevo migrate`.", WRONG
    if state in ("55P03", "57014"):
        return f"Postgres did not answer in time ({said}); nothing was changed, try again.", UNREACHABLE
    if state[:2] == "42" and state != "42501":  # what we sent is wrong, not who sent it
        return f"Relevo has a defect: {said} (SQLSTATE {state}); nothing was changed. Please report it with what you called.", FAILED
    return f"Postgres refused: {said} (SQLSTATE {state or 'none'}); nothing was changed.", UNREACHABLE
