"""One supervised process: started, listened to, told to stop, and ended with everything that it left in its session."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

from app.servicelog import ServiceLog
from workers import process

LEASH = Path(__file__).with_name("leash.py")
#: Written to by a service, one byte, when it is ready; the variable holds the number of the descriptor.
READY_FD = "RELEVO_READY_FD"
LONGEST_LINE = 65_536  # bytes; a longer one is shown in pieces


@dataclass(frozen=True)
class Service:
    """What to run. `command` and `env` (the whole environment) are asked anew at each start, after `prepare`.

    ready: whether it answers now; without it, the service writes a byte to the descriptor in RELEVO_READY_FD.
    stop_signal asks it to end; after `stop_within` seconds, asked when that begins, it is killed.
    death_signal: what it gets when the supervisor dies. inherits: descriptors that it has under the same numbers.
    """

    name: str
    command: Callable[[], Sequence[str]]
    env: Callable[[], Mapping[str, str]]
    cwd: Path | None = None
    prepare: Callable[[], None] | None = None
    ready: Callable[[], bool] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL
    stop_within: Callable[[], float] = lambda: 10.0
    inherits: Sequence[int] = ()


class Child:
    """A running process of a service. Made in the main thread: the leash is tied to the thread that starts it."""

    def __init__(self, service: Service, log: ServiceLog) -> None:
        self.service = service
        self.since = time.monotonic()
        self.last_lines: deque[str] = deque(maxlen=20)
        self.ready = False
        self._log = log
        # A service with a probe of its own gets no descriptor, and is never heard on one.
        self._ready_fd, theirs = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), str(int(service.death_signal)), *service.command()],
                env={**service.env(), READY_FD: str(theirs)} if service.ready is None else service.env(),
                cwd=service.cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                # Out of the terminal's reach: Ctrl-C is the supervisor's to pass on, in its order.
                start_new_session=True,
                pass_fds=[*service.inherits, *([theirs] if service.ready is None else [])],
            )
        except BaseException:
            os.close(self._ready_fd)
            raise
        finally:
            os.close(theirs)
        os.set_blocking(self._ready_fd, False)
        self.pid = self._process.pid
        self.pid_started = process.started(self.pid)
        assert self._process.stdout is not None
        self._listener = threading.Thread(target=self._listen, args=[self._process.stdout], name=service.name, daemon=True)
        self._listener.start()

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None until `ended`."""
        return self._process.returncode

    def check_ready(self) -> bool:
        """Whether the service has been ready since its start. Raises what its own probe raises."""
        if not self.ready and self._process.returncode is None:
            self.ready = self.service.ready() if self.service.ready is not None else self._heard()
        return self.ready

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process, nothing if it has ended."""
        # Not with Popen.send_signal, which would reap an ended process behind the back of `ended`.
        if self._process.returncode is None:
            os.kill(self.pid, number)

    def ended(self) -> bool:
        """Whether the process has ended; then everything that it left in its session is ended too, by force."""
        if self._process.returncode is None:
            # Looked at without reaping: as long as it is a zombie, its session's number is nobody else's.
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return False
            end_session(self.pid)
            # One that said it was ready and ended in the same breath was ready all the same.
            self.ready = self.ready or (self.service.ready is None and self._heard())
            self._process.wait()
            os.close(self._ready_fd)
            # The pipe ends with its last writer; one that left the session may hold it for long.
            self._listener.join(timeout=1)
        return True

    def _heard(self) -> bool:
        try:
            return os.read(self._ready_fd, 1) != b""
        except BlockingIOError:
            return False

    def _listen(self, output: IO[bytes]) -> None:
        with output:
            while line := output.readline(LONGEST_LINE):
                text = line.decode(errors="replace").rstrip()
                if text:
                    self.last_lines.append(text)
                    self._log.said(self.service.name, text)


def end_session(leader: int, timeout: float = 5.0) -> None:
    """Kill every process of the session `leader` but the leader itself, until none is left or `timeout` seconds have passed.

    The caller makes sure that the number is still that of the session it means.
    """
    _kill_all(lambda candidate: candidate.pid != leader and os.getsid(candidate.pid) == leader, timeout)


def end_leftovers(leaders: Mapping[int, int], variable: str, value: str, timeout: float = 5.0) -> None:
    """Kill what services of an earlier supervisor left: the leaders, and what is still in their sessions.

    leaders: process number and start (clock ticks since boot) of each. Numbers are reused, so a process is only taken for a
    member when it has the environment of a service: `variable` is `value`.
    """

    def leads_or_follows(candidate: psutil.Process) -> bool:
        session = os.getsid(candidate.pid)
        if session not in leaders:
            return False
        return process.started(candidate.pid) == leaders.get(candidate.pid, -1) or candidate.environ().get(variable) == value

    _kill_all(leads_or_follows, timeout)


def _kill_all(meant: Callable[[psutil.Process], bool], timeout: float) -> None:
    deadline = time.monotonic() + timeout
    # Again and again, because what is being killed may have forked meanwhile.
    while (left := [candidate for candidate in psutil.process_iter() if _is(candidate, meant)]) and time.monotonic() < deadline:
        for found in left:
            try:
                found.kill()
            except psutil.Error:
                continue
        psutil.wait_procs(left, timeout=0.5)


def _is(candidate: psutil.Process, meant: Callable[[psutil.Process], bool]) -> bool:
    try:
        return meant(candidate) and candidate.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False
