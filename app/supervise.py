"""A small supervisor: starts services in order, restarts what dies with a growing pause, stops all of them in the reverse order.

Those that were started together are stopped together.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from types import FrameType, TracebackType
from typing import Any, Self

from app.child import Child, Service
from app.servicelog import ServiceLog
from ordering.errors import RelevoError

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0  # seconds before a restart; doubles from death to death
LIVED = 30.0  # seconds of life after which a death counts as the first one again
HURRIED = 5.0  # seconds that a service has to end after the second signal
#: Signals so close to each other are one wish: `make` and wrappers pass on what the whole group got already.
SAME_WISH = 0.5
UNKILLABLE = 10.0  # seconds for the system to end what is killed: it may hang in a disk or a network
LOOK = 0.05  # seconds between two looks at something that does not wake us


class ServiceFailed(RelevoError):
    """A service cannot be started; `exit_code` is its own where it ended by itself, `last_lines` what it said."""

    def __init__(self, sentence: str, exit_code: int | None = None, last_lines: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
        self.last_lines = list(last_lines)


class StopAsked(Exception):
    """A signal asked for the end while services were still being started."""


@dataclass(frozen=True)
class ServiceState:
    """A service as it is now. state: starting, running, or pausing (dead, and waiting for its restart).

    pid_started: in clock ticks since boot. since: of this state, ISO 8601.
    """

    name: str
    state: str
    pid: int | None
    pid_started: int | None
    since: str
    restarts: int


class _Unit:
    def __init__(self, service: Service, group: int = 0) -> None:
        self.service = service
        self.group = group
        self.child: Child | None = None
        self.pause = FIRST_PAUSE
        self.again_at = 0.0
        self.restarts = 0
        self.since = datetime.now(UTC)

    def state(self) -> ServiceState:
        state = "pausing" if self.child is None else "running" if self.child.ready else "starting"
        since = self.since.isoformat(timespec="seconds")
        pid, started = (self.child.pid, self.child.pid_started) if self.child else (None, None)
        return ServiceState(self.service.name, state, pid, started, since, self.restarts)


class Supervisor:
    """Runs services for the length of a with-block in the main thread, whose signals it takes over. Ends all of them at the end.

    changed: called after each change of `states()`.
    """

    def __init__(self, log: ServiceLog, changed: Callable[[], None] = lambda: None) -> None:
        self._log = log
        self._changed = changed
        self._units: list[_Unit] = []
        self._wishes = 0
        self._last_wish = 0.0
        self._interruptible = False
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._handlers[number] = signal.signal(number, self._wish)
        # Only so that the wakeup descriptor is written to.
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._old_waker = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        signal.set_wakeup_fd(self._old_waker)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        os.close(self._wake)
        os.close(self._waker)

    def states(self) -> list[ServiceState]:
        """The services in the order in which they were started."""
        return [unit.state() for unit in self._units]

    def start(self, services: Sequence[Service], within: float) -> None:
        """Start `services` together and return when all are ready, after at most `within` seconds.

        Raises ServiceFailed when one of them ends or does not become ready, StopAsked after a signal.
        """
        group = len(self._units)
        pending = [_Unit(service, group) for service in services]
        deadline = time.monotonic() + within
        for unit in pending:
            self._units.append(unit)
            self._spawn(unit)
        while True:
            pending = [unit for unit in pending if not self._became_ready(unit)]
            if not pending:
                return
            if time.monotonic() > deadline:
                raise _failed(pending[0], f"was not ready within {within:g} s")
            self._look(but=pending)
            self._sleep(LOOK)
            if self._wishes:
                raise StopAsked

    def run(self) -> None:
        """Keep the services running until a signal asks for the end."""
        while not self._wishes:
            self._look()
            self._sleep(self._next_look())

    def stop(self) -> bool:
        """End the services, the last started first. Whether all of them ended by themselves; killed is what did not in time."""
        gracefully = True
        for _, group in groupby(reversed(self._units), key=lambda unit: unit.group):
            together = list(group)
            ending = [self._end(unit.child) for unit in together if unit.child is not None]
            while ending:
                looks = [next(end) for end in ending]
                gracefully = gracefully and False not in looks
                ending = [end for end, look in zip(ending, looks, strict=True) if look is None]
                if ending:
                    self._sleep(LOOK)
            for unit in together:
                unit.child = None
        self._units.clear()
        return gracefully

    def restart(self, name: str) -> None:
        """Ask a service to end, gracefully; it is started again as after a death."""
        for unit in self._units:
            if unit.service.name == name and unit.child is not None:
                unit.child.signal(unit.service.stop_signal)

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """A block of code that does not look for signals itself: one that asks for the end raises StopAsked inside it."""
        self._interruptible = True
        try:
            if self._wishes:
                raise StopAsked
            yield
        finally:
            self._interruptible = False

    def _wish(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._wishes and now - self._last_wish < SAME_WISH:
            return
        self._wishes += 1
        self._last_wish = now
        if self._interruptible:
            self._interruptible = False
            raise StopAsked

    def _sleep(self, seconds: float) -> None:
        select.select([self._wake], [], [], max(0.0, seconds))
        try:
            while os.read(self._wake, 4096):
                pass
        except BlockingIOError:
            return

    def _spawn(self, unit: _Unit) -> None:
        if unit.service.prepare is not None:
            unit.service.prepare()
        try:
            unit.child = Child(unit.service, self._log)
        except OSError as error:
            raise ServiceFailed(f"The {unit.service.name} cannot be started: {error.strerror or error}.") from error
        unit.since = datetime.now(UTC)
        self._changed()

    def _became_ready(self, unit: _Unit) -> bool:
        child = unit.child
        if child is None or (child.ended() and not child.ready):
            raise _failed(unit, f"ended while it was starting ({_how(child.exit_code if child else None)})")
        if child.check_ready():
            self._log.note(f"{unit.service.name} is ready (process {child.pid})")
            self._changed()
        return child.ready

    def _look(self, but: Sequence[_Unit] = ()) -> None:
        for unit in self._units:
            if unit in but:
                continue
            try:
                self._look_at(unit)
            except ServiceFailed as error:
                # At run time a service that cannot start is one that dies again.
                self._log.note(str(error))
                if unit.child is None:
                    self._pause(unit)
                else:
                    unit.child.signal(signal.SIGKILL)

    def _look_at(self, unit: _Unit) -> None:
        child = unit.child
        if child is None:
            if time.monotonic() >= unit.again_at:
                unit.restarts += 1
                self._spawn(unit)
        elif child.ended():
            lived = time.monotonic() - child.since
            unit.child = None
            if lived >= LIVED:
                unit.pause = FIRST_PAUSE
            self._log.note(f"{unit.service.name} ended ({_how(child.exit_code)}) after {lived:.1f} s; it starts again in {unit.pause:g} s")
            self._pause(unit)
        elif not child.ready:
            self._became_ready(unit)

    def _pause(self, unit: _Unit) -> None:
        unit.again_at = time.monotonic() + unit.pause
        unit.pause = min(LONGEST_PAUSE, unit.pause * 2)
        unit.since = datetime.now(UTC)
        self._changed()

    def _next_look(self) -> float:
        if any(unit.child is not None and not unit.child.ready for unit in self._units):
            return LOOK
        return min([60.0, *(unit.again_at - time.monotonic() for unit in self._units if unit.child is None)])

    def _end(self, child: Child) -> Iterator[bool | None]:
        """End one service within its bound, sooner as signals repeat the wish.

        A look at a time: None until it has ended, then whether it did without being killed.
        """
        service, told, killed = child.service, 0, False
        deadline = time.monotonic() + service.stop_within()
        while not child.ended():
            if told == 0 or min(self._wishes, 2) > told:
                hurry = self._wishes > 1
                self._log.note(f"{service.name} is asked to stop{' at once' if hurry else ''}")
                child.signal(service.stop_signal)
                deadline = min(deadline, time.monotonic() + HURRIED) if hurry else deadline
                told = 2 if hurry else 1
            if killed and time.monotonic() >= deadline + UNKILLABLE:
                self._log.note(f"{service.name} (process {child.pid}) does not end even when killed and is left to the system")
                yield False
            if not killed and (self._wishes > 2 or time.monotonic() >= deadline):
                self._log.note(f"{service.name} has not stopped in time and is killed")
                child.signal(signal.SIGKILL)
                killed = True
            yield None
        yield not killed


def _failed(unit: _Unit, what: str) -> ServiceFailed:
    child = unit.child
    lines = list(child.last_lines) if child else []
    said = f"its last words: {lines[-1]}" if lines else "it said nothing"
    return ServiceFailed(f"The {unit.service.name} {what}; {said}", child.exit_code if child else None, lines)


def _how(exit_code: int | None) -> str:
    return f"signal {-exit_code}" if exit_code is not None and exit_code < 0 else f"exit code {exit_code}"
