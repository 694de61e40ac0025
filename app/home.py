"""The home of a platform: one lock that says whether one is up, and a record, kept by who holds it, of what it runs."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from app.embedded.server import write_private
from app.supervise import ServiceState
from ordering.errors import RelevoError
from workers import process

#: Who only looks takes the lock for microseconds; whoever wants to keep it tries for this long, in seconds.
PATIENCE = 0.5


class PlatformError(RelevoError):
    """The platform cannot do what was asked. `exit_code` is the one that the command ends with."""

    exit_code = 3


class HomeUnusable(PlatformError):
    """The folder of RELEVO_HOME cannot be made or written."""

    exit_code = 2


class AlreadyUp(PlatformError):
    """Another platform has this home."""

    exit_code = 2

    def __init__(self, home: Path) -> None:
        super().__init__(f"A platform is up with the home {home} already: `relevo status` shows it, and RELEVO_HOME names another home.")


@dataclass(frozen=True)
class Record:
    """What the holder of the lock runs. state: starting, up or stopping. URLs are there from `up` on, passwords included;
    `url` is the HTTP server's, `metrics_url` the exporter's.

    stop_within: the longest, in seconds, that a stop takes.
    pid_started (clock ticks since boot) and boot tell this process from another one that has its number later.
    """

    pid: int
    pid_started: int
    boot: str
    since: str
    state: str
    stop_within: float
    database_url: str | None = None
    broker_url: str | None = None
    log: str | None = None
    url: str | None = None
    metrics_url: str | None = None
    services: list[ServiceState] = field(default_factory=list)


class Home:
    """The folder `path` (absolute), made when it is first taken."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = path / "platform.lock"
        self._record = path / "platform.json"

    @property
    def log(self) -> Path:
        """The file with the log of a detached platform."""
        return self.path / "log" / "relevo.log"

    def make(self) -> None:
        """Make the folder and what belongs in it, where it is missing. Raises HomeUnusable."""
        try:
            if not self.path.exists():
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
                # It lies in somebody's project by default, and holds passwords.
                (self.path / ".gitignore").write_text("*\n")
            self.log.parent.mkdir(mode=0o700, exist_ok=True)
            self._lock.touch(mode=0o600)
        except OSError as error:
            raise HomeUnusable(
                f"Cannot write in {self.path} ({error.strerror or error}): set RELEVO_HOME to a folder that can be written."
            ) from None

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the home for a block. Raises AlreadyUp, HomeUnusable.

        The lock belongs to the open file, so it ends with this process whatever ends it, and never with a child's.
        """
        self.make()
        descriptor = os.open(self._lock, os.O_RDWR)
        try:
            deadline = time.monotonic() + PATIENCE
            while not _locked(descriptor):
                if time.monotonic() > deadline:
                    raise AlreadyUp(self.path)
                time.sleep(0.02)
            yield
        finally:
            os.close(descriptor)

    def is_taken(self) -> bool:
        """Whether a platform holds the lock now."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise HomeUnusable(f"Cannot look into {self.path} ({error.strerror or error}): is RELEVO_HOME yours?") from None
        try:
            return not _locked(descriptor)
        finally:
            os.close(descriptor)

    def read(self) -> Record | None:
        """The record of the last platform, which may be gone; None where there is none that can be read."""
        try:
            told = json.loads(self._record.read_text())
            services = [ServiceState(**service) for service in told.pop("services")]
            return Record(**told, services=services)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def holder(self) -> Record | None:
        """The record of the platform that is there now, by the lock and by its process; None while it has written none yet."""
        record = self.read()
        return record if record is not None and self.is_taken() and is_process(record.pid, record.pid_started, record.boot) else None

    def write(self, record: Record) -> None:
        """Replace the record. Raises OSError."""
        write_private(self._record, json.dumps(asdict(record), indent=2) + "\n")

    def forget(self) -> None:
        """Remove the record."""
        self._record.unlink(missing_ok=True)


def is_process(pid: int, pid_started: int, boot: str) -> bool:
    """Whether a process with this number lives and is the one that began then."""
    return boot == process.boot_id() and process.started(pid) == pid_started


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def made_record(**fields: Any) -> Record:
    """A record of this process."""
    pid = os.getpid()
    return Record(pid=pid, pid_started=process.started(pid) or 0, boot=process.boot_id(), **fields)
