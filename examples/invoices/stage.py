"""What the demo starts and ends: a platform with a home of its own, the shop, and the other side."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import httpx
import psutil

from app.home import Home, Record

ROOT = Path(__file__).resolve().parents[2]
LEASH = ROOT / "app" / "leash.py"
RELEVO = ["-P", "-c", "from relevo import main; main()"]
UP_WITHIN = 150.0  # seconds; the first start makes a database cluster
SERVES_WITHIN = 30.0
#: Seconds to end: the platform lets bodies finish, then ends seven processes one after the other.
STOP_WITHIN = {"platform": 60.0, "web": 10.0, "receiver": 10.0}


class NotUp(Exception):
    """Something did not come up; the message says what."""


class Stage:
    """Services on a folder, each in a session of its own (a terminal's Ctrl-C is the demo's alone) and tied to the demo's life."""

    def __init__(self, folder: Path, trial_seconds: float) -> None:
        self.home = Home(folder / "home")
        self.receiver_file = folder / "receiver.sqlite"
        self._logs = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._seen: dict[int, psutil.Process] = {}
        self._web, self._receiver = _listening(), _listening()
        self.web_url, self.receiver_url = (f"http://127.0.0.1:{each.getsockname()[1]}" for each in (self._web, self._receiver))
        free = _listening()
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("RELEVO_", "INVOICES_"))}
        self._environment = kept | {
            "RELEVO_HOME": str(self.home.path),
            "RELEVO_CATALOGUE": str(Path(__file__).with_name("relevo.toml")),
            "RELEVO_PORT": str(free.getsockname()[1]),
            "INVOICES_PAYMENTS_URL": self.receiver_url,
            "INVOICES_RECEIVER_FILE": str(self.receiver_file),
            "INVOICES_TRIAL_SECONDS": str(trial_seconds),
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "TMPDIR": str(folder),  # what a killed process leaves there goes with the folder
        }
        free.close()

    def start(self) -> None:
        """Start everything and wait until it answers. Raises NotUp."""
        self._launch("receiver", _uvicorn("receiver", self._receiver), self._receiver)
        self._launch("platform", [*RELEVO, "up"])
        self._await("platform", self._is_up, UP_WITHIN)
        self._launch("web", _uvicorn("web", self._web), self._web)
        self._await("receiver", lambda: _answers(f"{self.receiver_url}/ready"), SERVES_WITHIN)
        self._await("web", lambda: _answers(f"{self.web_url}/recently"), SERVES_WITHIN)

    @property
    def record(self) -> Record:
        """What the platform runs now. Raises NotUp."""
        found = self.home.holder()
        if found is None or found.state != "up":
            raise NotUp(f"the platform is {'down' if found is None else found.state}; {self._last_words('platform')}")
        return found

    def service(self, name: str) -> psutil.Process | None:
        """The platform's process of this name, or None while it is being started again."""
        found = next((each for each in self.record.services if each.name == name and each.state == "running"), None)
        try:
            return None if found is None or found.pid is None else psutil.Process(found.pid)
        except psutil.NoSuchProcess:
            return None

    def stop(self) -> list[str]:
        """End everything, gracefully and then for certain; a line for each process that had to be killed. Bounded in time."""
        self._look()
        problems = []
        for name in [name for name in ("web", "platform", "receiver") if name in self._running]:
            process = self._running.pop(name)
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_WITHIN[name])
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)
                problems.append(f"the {name} did not stop within {STOP_WITHIN[name]:g} s")
        self._web.close()
        self._receiver.close()
        return problems + [f"process {each.pid} was left behind" for each in self._end_leftovers()]

    def _is_up(self) -> bool:
        found = self.home.holder()
        return found is not None and found.state == "up"

    def _launch(self, name: str, python: list[str], listening: socket.socket | None = None) -> None:
        # Should the demo be killed, each gets TERM, and with the platform goes all that it runs.
        tied = [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), str(int(signal.SIGTERM)), sys.executable, *python]
        passed = () if listening is None else (listening.fileno(),)
        with open(self._logs / f"{name}.log", "ab") as log:
            self._running[name] = subprocess.Popen(
                tied, env=self._environment, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=passed,
                start_new_session=True,
            )  # fmt: skip

    def _await(self, name: str, true: Callable[[], bool], within: float) -> None:
        deadline = time.monotonic() + within
        while not true():
            if self._running[name].poll() is not None:
                raise NotUp(f"the {name} ended while it was starting; {self._last_words(name)}")
            if time.monotonic() > deadline:
                raise NotUp(f"the {name} was not ready within {within:g} s; {self._last_words(name)}")
            time.sleep(0.05)

    def _last_words(self, name: str) -> str:
        file = self._logs / f"{name}.log"
        lines = file.read_text(errors="replace").strip().splitlines() if file.exists() else []
        return "\n  ".join(["its last words:", *lines[-8:]]) if lines else "it said nothing"

    def _look(self) -> None:
        """Remember every process that descends from what was started: whose parent has died can be found no other way."""
        for process in self._running.values():
            try:
                family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            except psutil.NoSuchProcess:
                continue
            self._seen |= {each.pid: each for each in family}

    def _end_leftovers(self) -> list[psutil.Process]:
        """Kill what is still there of it all: what was seen, and whatever has our home in its environment."""
        found = {each.pid: each for each in [*self._seen.values(), *_of_home(str(self.home.path))] if each.pid != os.getpid()}
        _, left = psutil.wait_procs([each for each in found.values() if each.is_running()], timeout=10)
        left = [each for each in left if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
        for each in left:
            each.kill()
        psutil.wait_procs(left, timeout=10)
        return left


def _of_home(home: str) -> Iterable[psutil.Process]:
    for each in psutil.process_iter():
        try:
            if each.environ().get("RELEVO_HOME") == home:
                yield each
        except psutil.Error:
            continue


def _listening() -> socket.socket:
    # Bound before the service is there, so that nobody else gets its port and clients wait instead of being turned away.
    made = socket.create_server(("127.0.0.1", 0), backlog=128)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.set_inheritable(True)
    return made


def _uvicorn(module: str, listening: socket.socket) -> list[str]:
    return ["-P", "-m", "uvicorn", f"examples.invoices.{module}:app", "--fd", str(listening.fileno()), "--log-level", "warning"]


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == 200
    except httpx.HTTPError:
        return False
