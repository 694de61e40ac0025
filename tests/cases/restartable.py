"""Servers of one test alone, which it may stop, kill and start again."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from app.embedded import Postgres, Server, Valkey, start_and_wait, stop
from ordering import db
from tests.servers import CARELESS


class Restartable:
    """One embedded server; its URL stays the same over restarts."""

    def __init__(self, server: Server, log: Path) -> None:
        self._server, self._log = server, log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self._server.url

    def start(self) -> None:
        """Start it if it is not running, and return once it answers."""
        if self._process is None:
            self._process = start_and_wait(self._server, self._log)

    def stop(self) -> None:
        """Stop it in an orderly way."""
        if self._process is not None:
            stop(self._server, self._process)
            self._process = None

    def kill(self) -> None:
        """kill -9 of the server and all its processes."""
        if self._process is not None:
            # The server first, so that it has no time to see what happens to the others.
            family = [psutil.Process(self._process.pid), *psutil.Process(self._process.pid).children(recursive=True)]
            for member in family:
                with suppress(psutil.NoSuchProcess):
                    member.kill()
            self._process.wait(60)
            psutil.wait_procs(family, timeout=60)
            self._process = None

    def restart(self) -> None:
        """Stop and start."""
        self.stop()
        self.start()


@contextmanager
def _running(server: Server, log: Path) -> Iterator[Restartable]:
    made = Restartable(server, log)
    made.start()
    try:
        yield made
    finally:
        made.stop()


@contextmanager
def database_server(folder: Path) -> Iterator[Restartable]:
    """A migrated PostgreSQL in `folder`; quick and careless, so `kill` may cost what was not written yet."""
    settings = {name: value for name, value in CARELESS.items() if name != "synchronous_commit"}
    with _running(Postgres(folder, settings), folder.with_suffix(".log")) as made:
        db.migrate(made.url)
        yield made


@contextmanager
def broker_server(folder: Path) -> Iterator[Restartable]:
    """A Valkey in `folder`, which keeps nothing over a restart."""
    with _running(Valkey(folder), folder.with_suffix(".log")) as made:
        yield made
