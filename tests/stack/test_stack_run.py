"""The stack as Compose would run it: up, a plan run, a worker killed, one service after the other restarted, down."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql

from app.embedded import Postgres, Valkey
from tests.stack import compose
from tests.stack.containers import Container, Stack, as_dict, stack

pytestmark = [pytest.mark.root, pytest.mark.timeout(900)]
SECRETS = {"POSTGRES_PASSWORD": "p1secret", "BROKER_PASSWORD": "b1secret", "RELEVO_FLOWER_AUTH": "me:f1secret", "GRAFANA_PASSWORD": "g1"}
CARELESS = {"listen_addresses": "127.0.0.1", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
SERVICES = ["web", "feeder", "worker", "exporter", "flower"]


class Project:
    """The stack with its two servers, and a caller with a token."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._postgres = Postgres(stack.folder / "postgres", CARELESS)
        self._postgres.prepare()
        # The image's client finds the server's socket where it was built to; this one is told.
        programs = Path(next(word for word in self._postgres.command() if word.endswith("/postgres"))).parent
        path = f"{programs}:{os.environ['PATH']}"
        stack.brought["postgres"] = {"PATH": path, "PGHOST": "127.0.0.1"}
        valkey = Valkey(stack.folder / "spare")  # for its program
        valkey.prepare()
        self._valkey_program = valkey.command()[0]
        (stack.folder / "valkey").mkdir()
        config = stack.folder / "valkey.conf"
        config.write_text(compose.interpolated(compose.raw()["configs"]["valkey"]["content"], stack.given))
        stack.put("/etc/valkey.conf", config)
        stack.put("/data", stack.folder / "valkey")
        self.token = ""

    def start_postgres(self) -> Container:
        """The embedded server in the place of the image's, with the service's own options."""
        options = self.stack.services["postgres"]["command"][1:]
        made = self.stack.run("postgres", [*self._postgres.command(), *options])
        made_ready(self._postgres.ready, 60, made)
        with psycopg.connect(self._postgres.url, autocommit=True) as admin:
            wanted = self.stack.services["postgres"]["environment"]
            if not admin.execute("select 1 from pg_database where datname = %s", [wanted["POSTGRES_DB"]]).fetchone():
                admin.execute(sql.SQL("create database {}").format(sql.Identifier(wanted["POSTGRES_DB"])))
                admin.execute(sql.SQL("alter role relevo password {}").format(sql.Literal(wanted["POSTGRES_PASSWORD"])))
                # The class keeps the password that it made; ours is the service's from now on.
                (self.stack.folder / "postgres" / "password").write_text(wanted["POSTGRES_PASSWORD"])
        return made

    def start_valkey(self) -> Container:
        """The embedded program in the place of the image's, with the service's own command."""
        return self.stack.run("valkey", [self._valkey_program, *map(str, self.stack.services["valkey"]["command"][1:])])

    def start(self, name: str) -> Container:
        """Start a service by its name."""
        special: dict[str, Callable[[], Container]] = {"postgres": self.start_postgres, "valkey": self.start_valkey}
        return special[name]() if name in special else self.stack.start(name)

    def call(self, path: str, body: object = None) -> dict[str, Any]:
        """One call of the API that works."""
        status, text = self.stack.ask(f"http://web:8000{path}", body, Authorization=f"Bearer {self.token}")
        assert status < 300, text
        return as_dict(text)

    def add(self, *command: str, plan: str = "line") -> int:
        """Add a command to the plan and start it; the item's id."""
        item = self.call(f"/api/plans/{plan}/items", {"task": "shell", "args": {"command": list(command)}})
        self.call(f"/api/plans/{plan}/start", {})
        return int(item["id"])

    def state(self, item: int) -> str:
        return str(self.call(f"/api/items/{item}")["item"]["state"])

    def becomes(self, item: int, state: str, within: float = 90) -> None:
        """Wait until the item is in this state."""
        deadline = time.monotonic() + within
        while (found := self.state(item)) != state:
            assert time.monotonic() < deadline, f"item {item} is {found} and not {state} within {within:g} s"
            time.sleep(0.3)


def made_ready(ready: Callable[[], bool], within: float, what: Container) -> None:
    deadline = time.monotonic() + within
    while not ready():
        assert time.monotonic() < deadline, what.text()
        time.sleep(0.1)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with stack(tmp_path, **SECRETS) as made:
        yield Project(made)


def test_up_a_run_a_death_restarts_and_down(project: Project) -> None:
    run = project.stack
    project.start("postgres")
    project.start("valkey")
    run.healthy("postgres")

    # Nobody can do anything yet, and says so.
    early = run.start("feeder")
    assert early.ends(120) == 2
    assert "relevo migrate" in early.text()

    migrated = run.start("migrate")
    assert migrated.ends(120) == 0, migrated.text()
    made = migrated_token(run)
    project.token = made
    for name in SERVICES:
        run.start(name)
    run.healthy(*SERVICES)

    # A plan runs.
    project.call("/api/plans", {"name": "line"})
    done = [project.add("echo", "hello") for _ in range(3)]
    for item in done:
        project.becomes(item, "succeeded")
    assert run.ask("http://web:8000/api/plans")[0] == 401
    status, metrics = run.ask("http://exporter:9464/metrics")
    assert status == 200
    assert 'relevo_up{source="postgres"} 1' in metrics
    assert 'relevo_dead_letters{plan="line"} 0' in metrics

    # A worker dies with everything in its container.
    long = project.add("sleep", "600")
    project.becomes(long, "running")
    run.running["worker"].kill()
    project.becomes(long, "interrupted")
    made_ready(lambda: not any_healthy_worker(run), 60, run.running["web"])  # the last of its sessions may end a moment later
    run.start("worker")
    run.healthy("worker")
    project.call(f"/api/items/{long}/resolve", {"note": "it only slept"})

    # One after the other is stopped as Compose stops it, and started again; work goes on in between.
    for name in ["worker", "feeder", "web", "exporter", "flower", "valkey", "postgres"]:
        code = run.stop(name)
        assert code == 0, (name, code, run.running[name].text())
        project.start(name)
        run.healthy(*(SERVICES if name in ("valkey", "postgres") else [name]))
        project.becomes(project.add("echo", name), "succeeded")

    # Down, in the reverse order of what waits for what.
    for name in [*SERVICES, "valkey", "postgres"]:
        assert run.stop(name) == 0, run.running[name].text()
        assert run.running[name].first is None


def migrated_token(run: Stack) -> str:
    """A token, made as docs/how-to/deploy.md says."""
    container = run.run("web", ["relevo", "token", "create", "me", "--role", "admin", "--file", "/run/secrets/tokens"])
    assert container.ends(120) == 0, container.text()
    return next(line for line in container.log.read_text().splitlines() if line.startswith("relevo_"))


def any_healthy_worker(run: Stack) -> bool:
    """Whether the health check, asked from another container with the worker's name, finds one."""
    done = run.running["web"].does(["unshare", "--uts", "sh", "-c", "hostname worker && exec relevo healthy worker"])
    assert done.returncode in (0, 1), done.stderr
    return done.returncode == 0
