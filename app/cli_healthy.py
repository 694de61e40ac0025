"""The health check of a service that has no address to ask: feeder and worker."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from app.cli_call import DONE, FAILED, say, transact


class Silent(StrEnum):
    """A service that serves nobody over HTTP."""

    FEEDER = "feeder"
    WORKER = "worker"


def healthy(service: Annotated[Silent, typer.Argument(metavar="SERVICE", help="feeder or worker.")]) -> None:
    """Tell whether the feeder or the worker of this machine does its work.

    By what Postgres sees: a feeder that asks, a pool process that holds its session. For health checks; ends with 0 or 1, and
    with 3 where Postgres does not answer.

    \b
    Example: relevo healthy worker
    """
    import socket

    from ordering import pulse

    if service is Silent.FEEDER:
        good = transact(pulse.feeds)
        said = "A feeder of this machine is at work." if good else "No feeder of this machine has asked for anything lately."
    else:
        host = socket.gethostname()
        good = transact(lambda tx: pulse.works(tx, host))
        said = "A worker of this machine is at work." if good else "No pool process of this machine holds a session."
    say(said)
    raise typer.Exit(DONE if good else FAILED)
