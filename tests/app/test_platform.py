"""`relevo up` and `down` whole, with the real servers and services, in homes of their own."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest
from sqlalchemy import make_url, text

from ordering import db, plans
from tests.app.processes import ROOT, alive, program, until
from tests.ports import free_port

pytestmark = pytest.mark.timeout(300)


class Place:
    """A folder of somebody's project, with a home in it, and what can be called there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / ".relevo"
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("RELEVO_")} | {"PYTHONPATH": str(ROOT)}

    def call(self, what: str, **env: str) -> tuple[int, str]:
        """Exit code and answer of one call of the platform."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tests.app.platform_call", what],
            cwd=self.folder,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=250,
        )
        assert done.stderr == ""
        return done.returncode, done.stdout.strip()

    def up(self, **env: str) -> dict[str, Any]:
        """Bring it up detached; the record."""
        assert self.call("detach", **env) == (0, "0"), self.log()
        return self.record()

    def record(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.home / "platform.json").read_text())
        return told

    def log(self) -> str:
        file = self.home / "log" / "relevo.log"
        return file.read_text()[-3000:] if file.exists() else ""

    def left(self) -> list[str]:
        """What still runs with this home in its command line or its environment."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                    continue
                line = process.cmdline()
                if str(self.home) in " ".join(line) or process.environ().get("RELEVO_HOME") == str(self.home):
                    found.append(f"{process.pid} {' '.join(line)}")
            except psutil.Error:
                continue
        return found

    def kill_everything(self) -> None:
        """kill -9 of each of them; some end because of others."""
        for line in self.left():
            with suppress(ProcessLookupError):
                os.kill(int(line.split()[0]), signal.SIGKILL)

    def nothing_left(self, within: float = 30) -> None:
        until(lambda: not self.left(), within, lambda: f"nothing is left: {self.left()}")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    if made.left():
        made.call("down")
    made.kill_everything()


def pids(record: dict[str, Any]) -> dict[str, int]:
    return {service["name"]: service["pid"] for service in record["services"]}


def test_up_detached_status_and_down(place: Place) -> None:
    record = place.up()
    assert stat.S_IMODE((place.home / "platform.json").stat().st_mode) == 0o600
    assert list(pids(record)) == ["postgres", "valkey", "feeder", "worker", "web", "exporter"]
    assert all(alive(pid) for pid in pids(record).values())

    code, told = place.call("status")
    status = json.loads(told)
    assert (code, status["state"], status["pid"], status["problems"]) == (0, "up", record["pid"], [])
    for name in ("database_url", "broker_url"):
        password = make_url(record[name]).password
        assert isinstance(password, str)
        assert password not in told

    urls = json.loads(place.call("urls")[1])
    assert urls == [record["database_url"], record["broker_url"]]

    code, sentence = place.call("up")
    assert code == 2
    assert sentence.startswith(f"A platform is up with the home {place.home} already")
    assert pids(place.record()) == pids(record)

    assert place.call("down") == (0, "true")
    place.nothing_left()
    assert place.call("down") == (0, "false")
    code, told = place.call("status")
    assert (code, json.loads(told)["state"]) == (3, "down")
    code, sentence = place.call("urls")
    assert (code, sentence) == (3, f"The platform with the home {place.home} is not up: `relevo up --detach` starts it.")


def test_kill_9_of_the_supervisor_leaves_nothing_and_a_recycled_pid_is_nobody(place: Place) -> None:
    record = place.up()
    engine = db.engine(record["database_url"], pooled=False)
    with engine.begin() as tx:
        plans.create(tx, "kept", actor="test")
    os.kill(record["pid"], signal.SIGKILL)
    place.nothing_left()
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        try:
            # The number, but not the start, of a process that is there; for the services too.
            record["pid"] = stranger.pid
            for service in record["services"]:
                service["pid"] = stranger.pid
            (place.home / "platform.json").write_text(json.dumps(record))
            assert json.loads(place.call("status")[1])["state"] == "down"
            assert place.call("down") == (0, "false")
            engine = db.engine(place.up()["database_url"], pooled=False)
            with engine.begin() as tx:
                assert plans.get(tx, "kept").name == "kept"
            assert place.call("down") == (0, "true")
            assert alive(stranger.pid)
        finally:
            stranger.kill()


def test_kill_9_of_everything_and_up_at_once(place: Place) -> None:
    record = place.up()
    place.kill_everything()
    again = place.up()
    assert again["pid"] != record["pid"]
    assert place.call("status")[0] == 0


def test_many_at_once_make_one_platform(place: Place) -> None:
    with ThreadPoolExecutor(5) as pool:
        ups = [pool.submit(place.call, "detach") for _ in range(2)]
        ensures = [pool.submit(place.call, "ensure") for _ in range(3)]
        codes = sorted(up.result()[0] for up in ups)
        assert codes in ([0, 2], [2, 2])
        assert all(ensure.result()[0] == 0 for ensure in ensures)
        started = codes.count(0) + [ensure.result()[1] for ensure in ensures].count("true")
    assert started == 1
    workers = [line for line in place.left() if "workers.feeder" in line]
    assert len(workers) == 1
    assert place.call("ensure") == (0, "false")


def test_in_the_foreground_a_signal_to_the_group_ends_everything_with_exit_code_0(place: Place) -> None:
    with program("-m", "tests.app.platform_call", "up", env=place.env, cwd=place.folder) as up:
        up.said("everything is up", within=90)
        os.killpg(up.pid, signal.SIGINT)
        assert up.ends(60) == 0
        stopped = [match[1] for match in up.said(r"relevo   \| (\w+) is asked to stop$", times=6)]
        assert stopped == ["exporter", "web", "worker", "feeder", "valkey", "postgres"]
        assert [line for line in up.lines if line.startswith("Traceback")] == []
    place.nothing_left()


def test_a_signal_while_it_starts_leaves_nothing(place: Place) -> None:
    with program("-m", "tests.app.platform_call", "up", env=place.env, cwd=place.folder) as up:
        up.said("postgres is ready", within=90)
        up.process.terminate()
        assert up.ends(60) == 0
    place.nothing_left()


def test_servers_and_services_that_die_come_back(place: Place) -> None:
    with program("-m", "tests.app.platform_call", "up", env=place.env, cwd=place.folder) as up:
        up.said("everything is up", within=90)
        before = place.record()
        for name, pid in pids(before).items():
            os.kill(pid, signal.SIGKILL)
            up.said(rf"{name} is ready", times=2, within=60)
        until(lambda: place.call("status")[0] == 0, 90, "everything answers again")
        after = place.record()
        assert (after["database_url"], after["broker_url"]) == (before["database_url"], before["broker_url"])
        assert set(pids(after).values()).isdisjoint(pids(before).values())

        # A broker whose port is taken while it is down comes back on another one, and the services learn of it.
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            os.kill(after["pid"], signal.SIGSTOP)  # or the supervisor might start it again before the thief comes
            os.kill(pids(after)["valkey"], signal.SIGKILL)
            until(lambda: bound(thief, int(urlsplit(after["broker_url"]).port or 0)), 30, "the port is taken")
            os.kill(after["pid"], signal.SIGCONT)
            up.said("worker is ready", times=3, within=60)
            until(lambda: place.call("status")[0] == 0, 90, "everything answers again")
        assert place.record()["broker_url"] != after["broker_url"]
        up.process.terminate()
        assert up.ends(60) == 0


def test_a_given_database_and_broker_are_used_and_nothing_embedded_starts(place: Place, database_url: str, broker_url: str) -> None:
    given = {"RELEVO_DATABASE_URL": database_url, "RELEVO_BROKER_URL": broker_url}
    record = place.up(**given)
    assert list(pids(record)) == ["feeder", "worker", "web", "exporter"]
    assert not (place.home / "postgres").exists()
    url = record["url"]
    until(lambda: httpx.get(f"{url}/readyz", trust_env=False, timeout=60).json()["status"] == "ready", 60, "everything is ready")
    # While the server is away, clients wait and are not refused.
    os.kill(pids(record)["web"], signal.SIGKILL)
    assert httpx.get(f"{url}/healthz", trust_env=False, timeout=60).status_code == 200
    assert place.record()["url"] == url


def bound(probe: socket.socket, port: int) -> bool:
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    probe.listen()
    return True


@pytest.mark.parametrize("how", ["up", "detach"])
def test_services_that_refuse_are_one_sentence_and_nothing_is_left(place: Place, database_url: str, how: str) -> None:
    url = make_url(database_url)
    nowhere = f"postgresql://u:secretpw@127.0.0.1:{free_port()}/x"
    missing = url.set(database="relevo_missing").render_as_string(hide_password=False)
    stranger = url.set(username="relevo_stranger", password="secretpw").render_as_string(hide_password=False)
    cases = [
        ({"RELEVO_DATABASE_URL": nowhere}, "Postgres is unreachable"),
        ({"RELEVO_DATABASE_URL": missing}, "relevo_missing"),
        ({"RELEVO_DATABASE_URL": stranger}, "relevo_stranger"),
        ({"RELEVO_BROKER_URL": f"redis://:secretpw@127.0.0.1:{free_port()}/0"}, "The broker at redis://:**@127.0.0.1"),
    ]
    for env, expected in cases:
        code, said = place.call(how, **env)
        assert code == 3, said
        assert expected in said
        assert "secretpw" not in said
        assert len(said.splitlines()) == 1
        place.nothing_left()
        assert not (place.home / "platform.json").exists()


CRON = '[[plans.line.schedules]]\nname = "never"\ncron = "0 0 30 2 *"\ntask = "shell"\n'


@pytest.mark.parametrize("content", ["imports = [", "imports = ['nowhere.to_be_found']", "imports = 7", CRON])
def test_a_broken_catalogue_is_one_sentence_that_names_it(place: Place, content: str) -> None:
    (place.folder / "relevo.toml").write_text(content)
    code, said = place.call("detach")
    assert code == 2, said
    assert "relevo.toml: " in said
    assert len(said.splitlines()) == 1
    place.nothing_left()


def test_a_home_that_cannot_be_written_is_one_sentence(place: Place) -> None:
    (place.folder / "file").write_text("")
    for how in ("up", "detach", "ensure"):
        code, said = place.call(how, RELEVO_HOME=str(place.folder / "file" / "home"))
        assert code == 2
        assert said.startswith(f"Cannot write in {place.folder / 'file' / 'home'} (")
        assert said.endswith("set RELEVO_HOME to a folder that can be written.")


def test_tasks_of_a_project_with_a_package_app_of_its_own(place: Place) -> None:
    package = place.folder / "app"
    package.mkdir()
    (package / "__init__.py").write_text("mine = True\n")
    (package / "tasks.py").write_text(
        "import app\nfrom workers import celery\nassert app.mine\n\n@celery.task(name='mine.greet')\ndef greet():\n    return 'hello'\n"
    )
    (place.folder / "relevo.toml").write_text("imports = ['app.tasks']\n")
    record = place.up()
    with db.engine(record["database_url"], pooled=False).connect() as connection:
        known = connection.execute(text("select name from relevo.task")).scalars().all()
    assert "mine.greet" in known
