"""What the start of every service has in common: settings, database, one sentence for what is wrong, and the word that it is ready."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from ordering import db, schema
from ordering.errors import DatabaseUnreachable, RelevoError
from workers import forks, log, settings
from workers.publish import BrokerUnavailable

logger = logging.getLogger(__name__)
# Taken out of the environment at once: a pool process or a command that inherited it would hold the descriptor's number.
READY_FD = os.environ.pop("RELEVO_READY_FD", None)


def main(service: Callable[[settings.Settings], int]) -> None:
    """Run `service` and exit: its own code, 2 when something is set wrongly, 3 when a service is unreachable."""
    try:
        chosen = settings.load()
        log.configure(chosen.log)
        code = service(chosen)
    except (DatabaseUnreachable, BrokerUnavailable) as error:
        print(error, file=sys.stderr)  # noqa: T201
        code = 3
    except RelevoError as error:
        print(error, file=sys.stderr)  # noqa: T201
        code = 2
    except DBAPIError as error:
        print(f"Postgres refuses: {db.said(error)}", file=sys.stderr)  # noqa: T201
        code = 3
    sys.exit(code)


def engine(chosen: settings.Settings, name: str) -> Engine:
    """An engine whose database answers and has our schema.

    Raises DatabaseUnreachable, NotMigrated, UnknownSchema, SettingsError, Invalid.
    """
    # A service looks after all plans: one whose lock somebody holds for long is left for the next round.
    made = forks.guard(db.engine(chosen.require_database(), name=name, settings={"lock_timeout": "500"}))
    schema.check_at(made)
    return made


def check_schema(engine: Engine) -> None:
    """For a service that starts without Postgres too, and answers that it is away. Raises NotMigrated, UnknownSchema where it is there."""
    try:
        schema.check_at(engine)
    except DatabaseUnreachable as error:
        logger.warning("%s", error)


def say_ready() -> None:
    """Tell whoever started this service that it works now, through the descriptor that RELEVO_READY_FD names, if any; once."""
    if READY_FD is not None:
        os.write(int(READY_FD), b"1")
        os.close(int(READY_FD))
