"""The pool process's side of the guard: start a command below one, wait for its end, stop it, kill it."""

import contextlib
import marshal
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

GUARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard.py")
KILL_SECONDS = 12.0  # the guard gives up on what ignores KILL after 10

# A child that a body forks (without exec) would hold our end of the socket open after the pool process's death by kill -9, and the
# guard would never hear of it. The lock keeps a fork from falling between making a socket and noting it down.
_ours: "weakref.WeakSet[socket.socket]" = weakref.WeakSet()
_making = threading.RLock()


def _forget_in_child() -> None:
    global _making
    _making = threading.RLock()
    for ours in list(_ours):
        ours.close()


os.register_at_fork(before=lambda: _making.acquire(), after_in_parent=lambda: _making.release(), after_in_child=_forget_in_child)


class GuardLost(Exception):
    """The guard ended, or never started, without saying how the command ended."""


class NotStarted(Exception):
    """The command could not be started: `phase` is "chdir" or "exec", `errno` says why."""

    def __init__(self, phase: str, errno: int) -> None:
        super().__init__(phase, errno)
        self.phase = phase
        self.errno = errno

    def __str__(self) -> str:
        return f"{self.phase}: {os.strerror(self.errno)}"


@dataclass(frozen=True)
class Ending:
    """How a command ended: an exit code, or the number of the signal that killed it; and the pids below it that ignore KILL."""

    code: int | None
    signal: int | None
    left: tuple[int, ...] = ()


class Guarded:
    """One command and everything it starts. As a context manager it leaves no descendant behind: an exception stops them first."""

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._ours: socket.socket | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._asked = False
        self._command: int | None = None
        self._failure: NotStarted | None = None
        self._left: tuple[int, ...] = ()
        self._status: int | None = None
        self._heard = b""
        self._over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if error is not None:
                self.stop()
        finally:
            self.kill()
            if self._ours is not None:
                self._ours.close()

    def start(self, command: Sequence[str], *, cwd: str | None, env: Mapping[str, str], stdout: int) -> None:
        """Start the command with an empty stdin, and stdout and stderr on the descriptor. Raises NotStarted, GuardLost."""
        with _making:
            self._ours, theirs = socket.socketpair()
            _ours.add(self._ours)
        with theirs:
            try:
                self._guard = subprocess.Popen(
                    [sys.executable, "-I", "-S", GUARD, str(theirs.fileno())],
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stdout,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,  # a TERM to the pool process's group must not reach the guard
                )
            except OSError as error:
                raise GuardLost(f"the guard process of the command could not be started: {error.strerror}") from error
        spec = marshal.dumps(
            (
                [os.fsencode(word) for word in command],
                {os.fsencode(name): os.fsencode(value) for name, value in env.items()},
                None if cwd is None else os.fsencode(cwd),
                self._grace,
            )
        )
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the guard is gone: the next line says so
            self._ours.sendall(len(spec).to_bytes(8, "big") + spec)
            self._asked = True
        self._listen(until_started=True)
        if self._failure is not None:
            raise self._failure
        if self._command is None:
            raise self._lost()

    def wait(self) -> Ending:
        """Wait until the command has ended and its last descendant too. Raises GuardLost; a signal handler's exception passes."""
        self._listen()
        if self._status is None:
            raise self._lost()
        code = os.waitstatus_to_exitcode(self._status)
        return Ending(code, None, self._left) if code >= 0 else Ending(None, -code, self._left)

    def stop(self) -> None:
        """TERM to every descendant, KILL to those left after the grace; returns when none is left."""
        if self._ours is None or self._over or not self._asked:
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._ours.sendall(b"stop\n")
            self._listen(seconds=self._grace + KILL_SECONDS)

    def kill(self) -> None:
        """KILL to every descendant; returns when none is left, or when some have ignored it for 10 s."""
        if self._ours is None or self._over:
            return
        with contextlib.suppress(OSError):  # not connected any more: the guard is gone
            self._ours.shutdown(socket.SHUT_WR)  # its end of stream, even where a forked child holds a copy
        self._listen(seconds=KILL_SECONDS)
        if not self._over and self._guard is not None:  # stopped (SIGSTOP) or stuck: its death is the command's too
            self._guard.kill()
            self._listen(seconds=KILL_SECONDS)

    def _listen(self, *, until_started: bool = False, seconds: float | None = None) -> None:
        """Take in what the guard says: until its end, its first word, or the time is over."""
        assert self._ours is not None
        until = None if seconds is None else time.monotonic() + seconds
        while not self._over and not (until_started and self._command is not None):
            self._ours.settimeout(None if until is None else max(0.001, until - time.monotonic()))
            try:
                piece = self._ours.recv(4096)
            except TimeoutError:
                return
            except ConnectionResetError:
                piece = b""
            if not piece:
                self._bury()
                return
            *lines, self._heard = (self._heard + piece).split(b"\n")
            for line in lines:
                self._take(line.decode().split())

    def _take(self, words: list[str]) -> None:
        match words:
            case ["started", pid]:
                self._command = int(pid)
            case ["failed", phase, errno]:
                self._failure = NotStarted(phase, int(errno))
            case ["left", *pids]:
                self._left = tuple(map(int, pids))
            case ["ended", status]:
                self._status = int(status)
            case _:
                raise GuardLost(f"the guard process said something unknown: {' '.join(words)}")

    def _bury(self) -> None:
        """The guard has ended. Where it was killed itself, the kernel has killed the command; the rest of its group is killed here."""
        self._over = True
        if self._guard is not None and self._guard.wait() != 0 and self._command is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._command, signal.SIGKILL)

    def _lost(self) -> GuardLost:
        if self._left:
            return GuardLost(f"the command could not be killed: process {', '.join(map(str, self._left))} ignores SIGKILL")
        code = None if self._guard is None else self._guard.poll()
        return GuardLost(f"the guard process of the command ended (status {code}) before it could say how the command ended")
