"""A private Postgres and Valkey, workers and feeders in processes of their own, and bodies that note when they start and end."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import Engine, make_url

from app.embedded import Postgres, Valkey, running
from ordering import db

HERE = Path(__file__).parent
RECORD = struct.Struct("<qqdd")  # lane, number, start, end (CLOCK_MONOTONIC, the same for all processes of a host)
MARKS = "RELEVO_BENCH_MARKS"


def mark(lane: int, number: int) -> None:
    """The whole body of a measured task: one record, appended by one write."""
    start = time.monotonic()
    with open(os.environ[MARKS], "ab", buffering=0) as file:
        file.write(RECORD.pack(lane, number, start, time.monotonic()))


@dataclass
class Rig:
    """The servers of one benchmark run, and what was started on them."""

    folder: Path
    postgres: str
    broker: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def marks(self) -> Path:
        """The file that bodies write to."""
        return self.folder / "marks"

    @contextmanager
    def database(self) -> Iterator[tuple[str, Engine]]:
        """A new, migrated database for a block: its URL and an engine."""
        name = f"bench_{uuid.uuid4().hex[:8]}"
        with psycopg.connect(self.postgres, autocommit=True) as admin:
            admin.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        url = make_url(self.postgres).set(database=name).render_as_string(hide_password=False)
        db.migrate(url)
        engine = db.engine(url, settings={"statement_timeout": "0"})
        try:
            yield url, engine
        finally:
            self.stop()
            engine.dispose()
            with psycopg.connect(self.postgres, autocommit=True) as admin:
                admin.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def start(self, database: str, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a service of the platform in a process group of its own and wait until it is ready."""
        reading, writing = os.pipe()
        environment = {
            **os.environ,
            "RELEVO_DATABASE_URL": database,
            "RELEVO_BROKER_URL": self.broker,
            "RELEVO_CATALOGUE": str(HERE / "tasks" / "relevo.toml"),
            "RELEVO_READY_FD": str(writing),
            "PYTHONPATH": str(HERE.parent),
            MARKS: str(self.marks),
        }
        return self._launch([sys.executable, "-P", "-m", module, *arguments], environment, reading, writing)

    def _launch(
        self, command: list[str], environment: dict[str, str], reading: int | None = None, writing: int | None = None
    ) -> subprocess.Popen[bytes]:
        with open(self.folder / "services.log", "ab") as log:
            process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, start_new_session=True,
                pass_fds=() if writing is None else (writing,),
            )  # fmt: skip
        self.processes.append(process)
        if writing is not None and reading is not None:
            os.close(writing)
            try:
                if os.read(reading, 1) != b"1":
                    raise RuntimeError(f"{command[-1]} did not start; see {self.folder / 'services.log'}")
            finally:
                os.close(reading)
        return process

    def launch_plain(self, command: list[str], **changes: str) -> subprocess.Popen[bytes]:
        """Start a contestant that knows nothing of the platform."""
        return self._launch(
            command, {**os.environ, **changes, "BENCH_BROKER": self.broker, "PYTHONPATH": str(HERE.parent), MARKS: str(self.marks)}
        )

    def stop(self) -> None:
        """End what was started, gracefully, then for certain."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    def read_marks(self) -> list[tuple[int, int, float, float]]:
        """All records so far: lane, number, start, end."""
        data = self.marks.read_bytes() if self.marks.exists() else b""
        return [RECORD.unpack_from(data, offset) for offset in range(0, len(data) - RECORD.size + 1, RECORD.size)]

    def await_marks(self, count: int, seconds: float) -> list[tuple[int, int, float, float]]:
        """Wait until `count` bodies have ended. Raises TimeoutError."""
        wait_for(lambda: self.marks.exists() and self.marks.stat().st_size >= count * RECORD.size, seconds)
        return self.read_marks()

    def forget_marks(self) -> None:
        """Begin with an empty file."""
        self.marks.unlink(missing_ok=True)


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    """Poll until the condition holds. Raises TimeoutError."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"nothing after {seconds} s")
        time.sleep(0.02)


@contextmanager
def rig(folder: Path) -> Iterator[Rig]:
    """Servers for a block: Postgres as it comes (fsync on), Valkey without persistence, both on this machine only."""
    with ExitStack() as stack:
        postgres = stack.enter_context(running(Postgres(folder / "postgres"), folder / "postgres.log"))
        broker = stack.enter_context(running(Valkey(folder / "valkey"), folder / "valkey.log"))
        made = Rig(folder, postgres, broker)
        try:
            yield made
        finally:
            made.stop()
