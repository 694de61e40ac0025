"""Programs that tests start and watch: their output as it comes, and what is left of them."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from tests.patience import wait_until as until

__all__ = ["ROOT", "Program", "alive", "program", "until"]

ROOT = Path(__file__).resolve().parents[2]


class Program:
    """A running program whose lines of output are collected."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",  # a program that is killed may stop in the middle of a character
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line.rstrip("\n"))

    @property
    def pid(self) -> int:
        return self.process.pid

    def said(self, pattern: str, times: int = 1, within: float = 60) -> list[re.Match[str]]:
        """The matches of `pattern` once there are `times` of them."""

        def found() -> list[re.Match[str]]:
            return [match for line in list(self.lines) if (match := re.search(pattern, line))]

        until(lambda: len(found()) >= times, within, lambda: f"{times} times {pattern!r} in {[line[:200] for line in self.lines[-30:]]}")
        return found()

    def ends(self, within: float) -> int:
        """The exit code, once the program has ended and so has its output."""
        until(lambda: self.process.poll() is not None, within, lambda: f"it ends: {self.lines[-30:]}")
        code = self.process.wait()
        self._reader.join(60)
        assert not self._reader.is_alive(), "the output of an ended program goes on: something of it is left"
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(60)
        self._reader.join(60)


@contextlib.contextmanager
def program(*command: str, env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Iterator[Program]:
    """Run `command` with this Python, killed at the end of the block if it is still there."""
    started = Program([sys.executable, "-P", *command], {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}, cwd)
    try:
        yield started
    finally:
        started.close()


def alive(pid: int) -> bool:
    """Whether the process is there and not a zombie."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
