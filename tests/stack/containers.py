"""The services of compose.yaml without Docker: each in namespaces of its own for processes and its host name, all in one network.

What a container would mount is put in its place by path; the entry point is left out, so that a service is process 1 itself: whatever
holds without `tini` holds with it.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import servers
from tests.stack import compose
from tests.stack.compose import ROOT

NAMED = '''hostname "$0" && exec "$@"'''


class Network:
    """A network namespace in which every service's name is this machine."""

    def __init__(self, names: Sequence[str]) -> None:
        self.name = servers.fresh_name("relevo-stack")
        self._etc = Path("/etc/netns") / self.name
        self._etc.mkdir(parents=True)
        (self._etc / "hosts").write_text(f"127.0.0.1 localhost {' '.join(names)}\n")
        _run("ip", "netns", "add", self.name)
        _run("ip", "-n", self.name, "link", "set", "lo", "up")

    def command(self, words: Sequence[str]) -> list[str]:
        """`words` as a command in this network."""
        return ["ip", "netns", "exec", self.name, *words]

    def close(self) -> None:
        _run("ip", "netns", "delete", self.name)
        shutil.rmtree(self._etc)


class Container:
    """One service that runs, or has run."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], log: Path, network: Network, folder: Path) -> None:
        self.name, self.log, self._env = name, log, dict(env)
        words = ["unshare", "--pid", "--fork", "--mount-proc", "--uts", "--kill-child", "sh", "-c", NAMED, name, *command]
        with log.open("ab") as output:
            self._outside = subprocess.Popen(
                network.command(words), env=self._env, cwd=folder, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            )  # fmt: skip

    @property
    def lives(self) -> bool:
        """Whether it has not ended."""
        return self._outside.poll() is None

    def ends(self, within: float) -> int:
        """Its exit code, once it has ended by itself."""
        return self._outside.wait(within)

    @property
    def first(self) -> psutil.Process | None:
        """Process 1, as this machine sees it; None once it has ended."""
        try:
            return next(iter(psutil.Process(self._outside.pid).children()), None)
        except psutil.NoSuchProcess:
            return None

    def text(self) -> str:
        """What it has logged, the end of it."""
        return f"{self.name}: {self.log.read_text(errors='replace')[-3000:]}"

    def does(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command inside, as `docker exec` and health checks do."""
        first = self.first
        assert first is not None, self.text()
        inside = ["nsenter", f"--target={first.pid}", "--net", "--pid", "--uts", "--mount", *words]
        return subprocess.run(inside, env=self._env, capture_output=True, text=True, timeout=120)

    def stop(self, number: int, within: float) -> int:
        """Stop it as Docker does: a signal to process 1, which must be enough; its exit code."""
        first = self.first
        assert first is not None, self.text()
        first.send_signal(number)
        try:
            return self._outside.wait(within)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it has not stopped within {within:g} s: {self.text()}") from None

    def kill(self) -> None:
        """As `docker kill`: nothing of it is asked."""
        if (first := self.first) is not None:
            first.kill()
        self._outside.wait(20)

    def close(self) -> None:
        if self._outside.poll() is None:
            self._outside.kill()  # its child is killed with it
        self._outside.wait(20)


class Stack:
    """The services of compose.yaml as one project."""

    def __init__(self, folder: Path, secrets: Mapping[str, str]) -> None:
        self.folder = folder
        self.given = compose.filled(**secrets)
        self.services = compose.services(self.given)
        self.network = Network(list(self.services))
        self.running: dict[str, Container] = {}
        #: What a service's image brings along, by service.
        self.brought: dict[str, dict[str, str]] = {}
        self._paths = {
            "/srv/project": str(folder / "project"), "/run/secrets/tokens": str(folder / "tokens"), "/home/relevo": str(folder / "home"),
        }  # fmt: skip
        for name in ("project", "home", "bin"):
            (folder / name).mkdir()
        relevo = folder / "bin" / "relevo"
        relevo.write_text(
            f'#!/bin/sh\nexec {sys.executable} -P -c \'import sys; sys.argv[0] = "relevo"; from relevo import main; main()\' "$@"\n'
        )
        relevo.chmod(0o755)

    def put(self, inside: str, outside: Path) -> None:
        """What a service sees at `inside` is at `outside`."""
        self._paths[inside] = str(outside)

    def _placed(self, text: str) -> str:
        for inside, outside in self._paths.items():
            text = text.replace(inside, outside)
        return text

    def environment(self, name: str) -> dict[str, str]:
        """The image's environment and the service's."""
        image = dict(
            re.findall(r"(?:^ENV |^ {4})(RELEVO_\w+|PYTHONUNBUFFERED)=(\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.M)
        )
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        machine = {"PATH": path, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "HOME": str(self.folder / "home")}
        mine = {key: self._placed(str(value)) for key, value in {**image, **self.services[name].get("environment", {})}.items()}
        return machine | mine | self.brought.get(name, {})

    def run(self, name: str, command: Sequence[str]) -> Container:
        """Start a command as this service."""
        made = Container(
            name, [self._placed(word) for word in command], self.environment(name), self.folder / f"{name}.log", self.network, self.folder
        )
        self.running[name] = made
        return made

    def start(self, name: str) -> Container:
        """Start one of our own services: what compose.yaml says, behind the image's entry point."""
        return self.run(name, ["relevo", *map(str, self.services[name]["command"])])

    def check(self, name: str) -> bool:
        """Whether the service's own health check is content. Fails if the service has ended."""
        container = self.running[name]
        assert container.lives, container.text()
        if container.first is None:
            return False  # not begun yet
        kind, *words = self.services[name]["healthcheck"]["test"]
        words = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        return container.does([self._placed(word) for word in words]).returncode == 0

    def healthy(self, *names: str, within: float = 240) -> None:
        """Wait until each service's health check is content."""
        deadline = time.monotonic() + within
        for name in names:
            while not self.check(name):
                assert time.monotonic() < deadline, f"not healthy within {within:g} s: {self.running[name].text()}"
                time.sleep(0.3)

    def stop(self, name: str) -> int:
        """Stop a service as Compose does; its exit code."""
        service = self.services[name]
        number = getattr(signal, service.get("stop_signal", "SIGTERM"))
        return self.running[name].stop(number, float(str(service.get("stop_grace_period", "10s")).removesuffix("s")))

    def ask(self, url: str, body: object = None, **headers: str) -> tuple[int, str]:
        """Status and body of one request, sent from inside the network."""
        sent = json.dumps({"url": url, "body": body, "headers": headers})
        done = subprocess.run(
            self.network.command([sys.executable, "-c", ASK, sent]), capture_output=True, text=True, timeout=60, check=True, cwd=self.folder
        )
        status, text = json.loads(done.stdout)
        return int(status), str(text)

    def close(self) -> None:
        for container in self.running.values():
            container.close()
        self.network.close()


ASK = """
import json, sys, urllib.error, urllib.request
given = json.loads(sys.argv[1])
body = None if given["body"] is None else json.dumps(given["body"]).encode()
request = urllib.request.Request(given["url"], body, {"Content-Type": "application/json", **given["headers"]})
try:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        print(json.dumps([answer.status, answer.read().decode()]))
except urllib.error.HTTPError as error:
    print(json.dumps([error.code, error.read().decode()]))
"""


@contextmanager
def stack(folder: Path, **secrets: str) -> Iterator[Stack]:
    """The stack for one block; skips the test where namespaces cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("making namespaces needs root")
    for program in ("ip", "nsenter", "unshare"):
        if shutil.which(program) is None:
            pytest.skip(f"the program {program} is missing: no namespace can be made")
    made = Stack(folder, secrets)
    try:
        yield made
    finally:
        made.close()


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"


def as_dict(text: str) -> dict[str, Any]:
    """An answer in JSON."""
    return dict(json.loads(text))
