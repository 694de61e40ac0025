"""The platform on this machine: up, down, its status, and where its servers are. One for each home, whoever starts it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from app import environment
from app.home import AlreadyUp, Home, PlatformError, Record, is_process
from app.launch import Platform, StartFailed
from app.servicelog import ServiceLog
from app.supervise import ServiceState, StopAsked
from workers.settings import Settings

DETACHED = Path(__file__).with_name("detached.py")
#: Seconds until a start is given up: the first one makes a database cluster, and a slow disk takes its time.
UP_WITHIN = 300.0
LOOK = 0.05


class NotUp(PlatformError):
    """There is no platform to talk to."""

    def __init__(self, home: Path, state: str = "down") -> None:
        why = "is not up" if state == "down" else f"is {state}"
        super().__init__(f"The platform with the home {home} {why}: `relevo up --detach` starts it.")


class NotStopped(PlatformError):
    """The platform was asked to stop and has not, or could not be asked."""

    exit_code = 1


@dataclass(frozen=True)
class Status:
    """The platform as it is now. state: down, starting, up or stopping. URLs are without passwords; `url` is the HTTP server's,
    `metrics_url` the exporter's.

    problems: one sentence for each thing that should run or answer and does not.
    """

    state: str
    home: Path
    pid: int | None = None
    since: str | None = None
    database_url: str | None = None
    broker_url: str | None = None
    url: str | None = None
    metrics_url: str | None = None
    log: str | None = None
    services: list[ServiceState] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0 when everything is up and answers, else 3."""
        return 0 if self.state == "up" and not self.problems else 3


def up(settings: Settings, detach: bool = False) -> int:
    """Bring the platform up. In the foreground, run it until a signal; detached, return when every service is ready.

    Returns the exit code: 0, or 1 when something had to be killed at the end. Raises AlreadyUp, HomeUnusable or
    StartFailed, with nothing left running. In the foreground it must be called in the main thread.
    """
    home = Home(settings.home)
    if detach:
        _up_detached(settings, home)
        return 0
    return _hold(settings, home, None, lambda: None)


def ensure_up(settings: Settings) -> bool:
    """Bring the platform up detached where it is not, and wait until it is ready. Whether this call started it.

    Any number of callers at once get one platform. Raises as `up` does, but never AlreadyUp.
    """
    home = Home(settings.home)
    deadline = time.monotonic() + UP_WITHIN
    while time.monotonic() < deadline:
        if home.is_taken():
            record = home.holder()
            if record is not None and record.state == "up":
                return False
            time.sleep(LOOK)
            continue
        try:
            _up_detached(settings, home)
        except AlreadyUp:
            continue
        return True
    raise StartFailed(f"The platform with the home {home.path} is held by a process that is not ready after {UP_WITHIN:g} s.")


def down(settings: Settings) -> bool:
    """Stop the platform and wait until all of it has ended. False when none is up. Raises NotStopped.

    Takes at most the time that its services are given to end: about 80 s, and the longest stop_grace of its plans.
    """
    home = Home(settings.home)
    record = _settled_holder(home)
    if record is None:
        return False
    try:
        _ask_to_stop(record)
    except PermissionError:
        raise NotStopped(f"The platform with the home {home.path} belongs to another user: stop it as that user.") from None
    began = time.monotonic()
    while home.is_taken():
        now = home.holder() or record
        if now.pid_started != record.pid_started:
            return True  # stopped, and another one was started since
        if time.monotonic() - began > now.stop_within:
            raise NotStopped(f"The platform has not stopped within {now.stop_within:g} s: `kill -9 {now.pid}` ends it and all it started.")
        time.sleep(LOOK)
    return True


def status(settings: Settings) -> Status:
    """What runs, and whether database and broker answer. Takes at most about 3 s. Raises HomeUnusable."""
    home = Home(settings.home)
    record = home.holder()
    if record is None:
        return Status("starting" if home.is_taken() else "down", home.path)
    halting = [service for service in record.services if service.state != "running"]
    problems = [f"The {service.name} is {service.state} since {service.since}." for service in halting]
    if record.state == "up" and record.database_url and record.broker_url:
        # Here, because it loads Celery.
        from app import probe

        problems += probe.both(record.database_url, record.broker_url)
    return Status(
        record.state,
        home.path,
        record.pid,
        record.since,
        _without_password(record.database_url),
        _without_password(record.broker_url),
        record.url,
        record.metrics_url,
        record.log,
        record.services,
        problems,
    )


def board(settings: Settings) -> str:
    """Where the board of the platform is that is up, for a sentence; empty where none is up any more."""
    record = Home(settings.home).holder()
    return "" if record is None or record.url is None else f", with its board at {record.url}"


class Urls(NamedTuple):
    """Where clients connect, passwords included."""

    database_url: str
    broker_url: str


def urls(settings: Settings) -> Urls:
    """URL of the database and of the broker: the ones that are set, else those of the platform that is up.

    Raises NotUp where one of them is not set and no platform is up.
    """
    if settings.database_url and settings.broker_url:
        return Urls(settings.database_url, settings.broker_url)
    home = Home(settings.home)
    record = home.holder()
    if record is None or record.database_url is None or record.broker_url is None:
        raise NotUp(home.path, "still starting" if home.is_taken() else "down")
    return Urls(settings.database_url or record.database_url, settings.broker_url or record.broker_url)


def hold_detached(settings: Settings, report: int) -> int:
    """What the detached process does: as `up` in the foreground, with the log in a file and the start told to `report`."""
    home = Home(settings.home)

    def tell(**fields: Any) -> None:
        try:
            with os.fdopen(report, "w") as pipe:
                pipe.write(json.dumps(fields) + "\n")
        except BrokenPipeError:
            # Whoever asked is gone, and what nobody waits for is not left behind.
            raise StopAsked from None

    try:
        return _hold(settings, home, home.log, lambda: tell(ok=True))
    except PlatformError as error:
        tell(sentence=str(error), exit_code=error.exit_code, taken=isinstance(error, AlreadyUp), lines=getattr(error, "lines", []))
        return error.exit_code


def _hold(settings: Settings, home: Home, log_file: Path | None, came_up: Callable[[], None]) -> int:
    with home.taken(), ServiceLog(log_file, settings.log == "json") as log:
        return Platform(settings, home, log, log_file).run(came_up)


def _up_detached(settings: Settings, home: Home) -> None:
    home.make()
    mine, theirs = os.pipe()
    with os.fdopen(mine, "rb") as told, home.log.open("ab") as log:
        try:
            # It leaves at once, and what goes on belongs to no terminal and to no process of ours.
            subprocess.run(
                [sys.executable, "-P", str(DETACHED), str(theirs)],
                env=environment.of_settings(settings),
                cwd=settings.catalogue.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs],
                start_new_session=True,
                check=True,
                timeout=30,
            )
        finally:
            os.close(theirs)
        ready, _, _ = select.select([told], [], [], UP_WITHIN)
        line = told.readline() if ready else b""
    answer = json.loads(line) if line else {}
    if answer.get("ok"):
        return
    if answer.get("taken"):
        raise AlreadyUp(home.path)
    silent = "The platform ended while it was starting" if ready else f"The platform was not up within {UP_WITHIN:g} s"
    raise StartFailed(
        f"{answer.get('sentence', silent).rstrip('.')}; the log is {home.log}.", answer.get("exit_code", 3), answer.get("lines", [])
    )


def _settled_holder(home: Home) -> Record | None:
    """The holder's record, waited for where it is being written. None where nobody holds the home."""
    deadline = time.monotonic() + 3
    while home.is_taken():
        record = home.holder()
        if record is not None:
            return record
        if time.monotonic() > deadline:
            raise NotStopped(f"The home {home.path} is held by a process that cannot be seen from here: stop it where it runs.")
        time.sleep(LOOK)
    return None


def _ask_to_stop(record: Record) -> None:
    try:
        descriptor = os.pidfd_open(record.pid)
    except ProcessLookupError:
        return
    try:
        # Asked once the descriptor is open: it stays with the process that it was opened for, whoever gets the number later.
        if is_process(record.pid, record.pid_started, record.boot):
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)


def _without_password(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    shown = f"{user.split(':')[0]}:***@{host}" if ":" in user else parts.netloc
    return parts._replace(netloc=shown).geturl()
