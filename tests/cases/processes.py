"""The product's services as processes of a case: started, signalled, and gone at the end, each found by a mark in its environment."""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tests.patience import wait_until

ROOT = Path(__file__).parents[2]
MARK = "RELEVO_CASE"
READY_WITHIN = 60.0


class Service:
    """One feeder or worker, in a session of its own."""

    def __init__(self, name: str, command: list[str], environment: Mapping[str, str], log: Path, folder: Path) -> None:
        self.name, self.log = name, log
        reading, writing = os.pipe()
        try:
            with log.open("wb") as output:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", *command],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, start_new_session=True,
                    env={**environment, "RELEVO_READY_FD": str(writing)}, pass_fds=[writing],
                )  # fmt: skip
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._reading: int | None = reading

    @property
    def pid(self) -> int:
        """The main process."""
        return self.process.pid

    def wait_ready(self) -> "Service":
        """Return once the service says that it works; fails with its log if it ends or says nothing."""
        assert self._reading is not None, "asked twice"
        reading, self._reading = self._reading, None
        try:
            ready, _, _ = select.select([reading], [], [], READY_WITHIN)
            said = os.read(reading, 1) if ready else b""
        finally:
            os.close(reading)
        assert said, f"{self.name} is not ready: {self.text()[-3000:]}"
        return self

    def pool(self) -> list[int]:
        """The pids of the pool processes, in the order of their start."""
        try:
            children = psutil.Process(self.pid).children()
        except psutil.NoSuchProcess:
            return []
        living = [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
        return sorted(child.pid for child in living)

    def send(self, number: int) -> None:
        """A signal to the main process only."""
        self.process.send_signal(number)

    def term(self) -> None:
        """Ask the main process to stop gracefully."""
        self.send(signal.SIGTERM)

    def kill(self) -> None:
        """kill -9 of the main process only; its children are left to themselves."""
        self.process.kill()
        self.process.wait(60)

    def kill_all(self) -> None:
        """kill -9 of the main process and every descendant, as of a machine that loses power."""
        try:
            family = [psutil.Process(self.pid), *psutil.Process(self.pid).children(recursive=True)]
        except psutil.NoSuchProcess:
            family = []
        for member in family:
            _kill(member.pid)
        self.process.wait(60)

    def stop_and_go(self, number: int) -> None:
        """STOP or CONT to the main process and its children."""
        for pid in [self.pid, *self.pool()]:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def wait(self, seconds: float) -> int:
        """Wait for the end of the main process; its exit code."""
        wait_until(lambda: self.process.poll() is not None, seconds, lambda: f"{self.name} ends: {self.text()[-3000:]}")
        return self.process.wait()

    def text(self) -> str:
        """What it logged so far."""
        return self.log.read_text(errors="replace")

    def close(self) -> None:
        """Let go of the ready pipe."""
        if self._reading is not None:
            os.close(self._reading)
            self._reading = None


def marked(mark: str) -> Iterator[int]:
    """The living processes whose environment has the mark: what a case started and whatever that left behind."""
    wanted = f"{MARK}={mark}".encode()
    for process in psutil.process_iter():
        try:
            environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if wanted in environment and process.pid != os.getpid():
            yield process.pid


def end(services: list[Service], mark: str, patience: float) -> list[str]:
    """Stop every service gracefully, by force after `patience` seconds; the complaints, one for each process that stayed."""
    complaints = []
    for service in services:
        service.close()
        if service.process.poll() is None:
            service.stop_and_go(signal.SIGCONT)
            service.term()
    deadline = time.monotonic() + patience
    for service in services:
        try:
            service.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            complaints.append(f"{service.name} did not stop within {patience} s of TERM:\n{service.text()[-3000:]}")
            service.kill_all()
    while (left := list(marked(mark))) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        try:
            complaints.append(f"a product process was left over: {pid} {psutil.Process(pid).cmdline()}")
        except psutil.NoSuchProcess:
            continue
        _kill(pid)
    return complaints


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
