"""Real worker processes of the probe application, what they did, and waiting for it with a deadline."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celery import Celery

from tests.lines import whole_lines
from tests.patience import wait_until as until
from workers.publish import Publisher

__all__ = ["ROOT", "Workers", "until", "workers"]

ROOT = Path(__file__).parents[2]
HELD = "held"  # in place of its seconds: a body that lasts until it is let go


class Workers:
    """Worker processes on one broker and one queue, with one folder for their notes and logs."""

    def __init__(self, broker: str, queue: str, home: Path) -> None:
        self.broker, self.queue, self.home = broker, queue, home
        self.publisher = Publisher(Celery("publisher", broker=broker))
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, slots: int) -> subprocess.Popen[bytes]:
        """Start a worker with so many slots and wait until it consumes."""
        log = self.home / f"worker{len(self.processes)}.log"
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PROBE_HOME": str(self.home),
            "PROBE_BROKER": self.broker,
            "PROBE_QUEUE": self.queue,
        }
        command = [sys.executable, "-P", "-m", "celery", "-A", "tests.workers.probe", "worker", "-l", "INFO", "-c", str(slots)]
        command += ["-n", f"w{len(self.processes)}@%h", "-E", "--without-gossip", "--without-mingle"]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env=environment, cwd=self.home)
        self.processes.append(process)
        until(lambda: " ready." in log.read_text(), 60, lambda: f"the worker is ready, see {log.read_text()[-2000:]}")
        return process

    def send(self, dispatch_id: str, task: str = "probe.sleep") -> None:
        """Publish one dispatch; for `probe.sleep` the id ends with `:seconds`."""
        self.publisher.send(dispatch_id, task, self.queue, "()", "{}")

    def notes(self, name: str) -> list[dict[str, Any]]:
        """What the workers wrote so far under this name."""
        path = self.home / f"{name}.jsonl"
        return [json.loads(line) for line in whole_lines(path)] if path.exists() else []

    def bodies(self, what: str) -> dict[str, list[float]]:
        """When each dispatch started (or ended), by id."""
        times: dict[str, list[float]] = {}
        for line in self.notes("bodies"):
            if line["what"] == what:
                times.setdefault(line["id"], []).append(line["at"])
        return times

    def runs(self, dispatch_id: str, seconds: float = 30) -> None:
        """Publish a dispatch that does nothing and wait for its end."""
        self.send(dispatch_id)
        self.ends(dispatch_id, seconds)

    def hold(self, name: str) -> str:
        """Publish a dispatch whose body lasts until `let_go`; its id."""
        dispatch_id = f"{name}:{HELD}"
        self.send(dispatch_id)
        return dispatch_id

    def let_go(self) -> None:
        """Every body that is held, now or later, ends."""
        (self.home / "let-go").touch()

    def ends(self, dispatch_id: str, seconds: float = 30) -> None:
        """Wait for the end of a dispatch."""
        until(lambda: dispatch_id in self.bodies("end"), seconds, lambda: f"{dispatch_id} has run; {self.log()[-3000:]}")

    def log(self) -> str:
        """What all workers logged."""
        return "".join(path.read_text(errors="replace") for path in sorted(self.home.glob("worker*.log")))

    def close(self) -> None:
        """End every process; a graceful stop first, since it must work too."""
        self.publisher.close()
        self.let_go()
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def workers(broker: str, queue: str, home: Path) -> Iterator[Workers]:
    """Workers for one test; none outlives the block."""
    made = Workers(broker, queue, home)
    try:
        yield made
    finally:
        made.close()
