"""The HTTP service as a process: it starts, answers, ends at TERM; and what it says when it cannot."""

import os
import signal
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine, text

from app import listen
from tests.app.commands import command, environment
from tests.app.processes import ROOT, Program, program, until
from tests.app.web import ok, problem
from tests.patience import Stopwatch
from tests.ports import free_port
from workers import settings
from workers.settings import SettingsError

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def env(database_url: str, broker_url: str, tmp_path: Path) -> dict[str, str]:
    return environment(database_url, tmp_path, RELEVO_BROKER_URL=broker_url, RELEVO_PORT=str(free_port()))


@pytest.fixture
def server(env: dict[str, str], tmp_path: Path) -> Iterator[Program]:
    with program("-m", "app.cli", "serve", env=env, cwd=tmp_path) as running:
        running.said(r"Serving at http://127\.0\.0\.1:\d+")
        yield running


def test_it_answers_and_ends_at_term_with_what_was_under_way_done(server: Program, env: dict[str, str]) -> None:
    url = f"http://127.0.0.1:{env['RELEVO_PORT']}"
    with httpx.Client(base_url=url, headers=JSON, trust_env=False, timeout=60) as client:
        assert ok(client.get("/healthz")) == {"status": "ok"}
        assert ok(client.get("/readyz")) == {"status": "degraded", "services": {"database": "ok", "broker": "ok", "workers": "none"}}
        ok(client.post("/api/plans", json={"name": "nightly"}), 201)
        with socket.create_connection(("127.0.0.1", int(env["RELEVO_PORT"]))) as slow:
            body = b'{"name": "slow"}'
            head = f"POST /api/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            slow.sendall(head.encode() + body[:5])
            ok(client.get("/healthz"))  # the slow one is in
            server.process.send_signal(signal.SIGTERM)
            until(lambda: refused(env), 30, "no new connection is taken")
            slow.sendall(body[5:])
            assert slow.recv(100).startswith(b"HTTP/1.1 201 ")
    assert server.ends(60) == 0
    assert [line for line in server.lines if "Traceback" in line] == []


SLOW = """
    create function slow() returns trigger language plpgsql as $body$ begin
        while not exists (select from public.go) loop perform pg_sleep(0.05); end loop;
        return new;
    end $body$;
    create table public.go (now boolean);
    create trigger slow before insert on relevo.item for each row when (new.title = 'slow') execute function slow()
"""


def go(engine: Engine) -> None:
    """Whoever is slow goes on."""
    with engine.begin() as tx:
        tx.execute(text("insert into public.go values (true)"))


@pytest.mark.parametrize("answered", [False, True])
def test_e1_a_call_to_a_server_that_is_killed_is_made_once_however_often_it_is_said(
    env: dict[str, str], tmp_path: Path, engine: Engine, answered: bool
) -> None:
    with engine.begin() as tx:
        tx.execute(text(SLOW))
    url, items = f"http://127.0.0.1:{env['RELEVO_PORT']}", "/api/plans/line/items"
    body = {"task": "http", "title": "slow", "args": {"url": "http://127.0.0.1:1/"}}
    with httpx.Client(base_url=url, headers={**JSON, "Idempotency-Key": "once"}, trust_env=False, timeout=60) as client:
        with program("-m", "app.cli", "serve", env=env, cwd=tmp_path) as killed:
            killed.said("Serving at ")
            ok(httpx.post(f"{url}/api/plans", headers=JSON, json={"name": "line"}, trust_env=False, timeout=60), 201)
            with ThreadPoolExecutor(1) as pool:
                call = pool.submit(client.post, items, json=body)
                with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as look:
                    sleeping = text("select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()")
                    until(lambda: look.execute(sleeping).scalar_one() == 1, 30, "the call is at work")
                if answered:
                    go(engine)
                    call.result(60)
                os.kill(killed.pid, signal.SIGKILL)
                if not answered:
                    go(engine)
                    with pytest.raises(httpx.TransportError):
                        call.result(60)
        with program("-m", "app.cli", "serve", env=env, cwd=tmp_path) as running:
            running.said("Serving at ")
            made = ok(client.post(items, json=body), 201)
            assert ok(client.post(items, json=body), 201) == made
            assert [each["id"] for each in ok(client.get(items))["items"]] == [made["id"]]
            running.process.terminate()
            assert running.ends(60) == 0


def refused(env: dict[str, str]) -> bool:
    try:
        socket.create_connection(("127.0.0.1", int(env["RELEVO_PORT"])), timeout=1).close()
    except OSError:
        return True
    return False


FEW_FILES = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 500))
os.execv(sys.executable, [sys.executable, "-m", "app.cli", "serve"])
"""


def test_a_process_that_may_open_few_files_serves_as_many_clients_as_it_can(env: dict[str, str], tmp_path: Path) -> None:
    with program("-c", FEW_FILES, env=env, cwd=tmp_path) as running, ExitStack() as opened:
        running.said("Serving at ")
        running.said("may open 500 files, so it serves 100 clients at a time instead of 1000")
        for _ in range(120):
            opened.enter_context(socket.create_connection(("127.0.0.1", int(env["RELEVO_PORT"])), timeout=60))
        plans = f"http://127.0.0.1:{env['RELEVO_PORT']}/api/plans"
        problem(httpx.get(plans, trust_env=False, timeout=60), 503, "busy")
        os.kill(running.pid, signal.SIGSTOP)  # so that many wait at once, as on a machine that has other work
        for number in range(400):
            if number == 240:
                os.kill(running.pid, signal.SIGCONT)
            opened.enter_context(socket.create_connection(("127.0.0.1", int(env["RELEVO_PORT"])), timeout=60))
        opened.close()

        def served() -> bool:
            with suppress(httpx.TransportError):
                return httpx.get(plans, trust_env=False, timeout=60).status_code == 200
            return False

        until(served, 60, "it serves again")
        assert [line for line in running.lines if "Too many open files" in line or "Traceback" in line] == []


def test_slow_clients_hold_up_nobody_and_are_given_up(server: Program, env: dict[str, str]) -> None:
    port = int(env["RELEVO_PORT"])
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
    try:
        for number, client in enumerate(clients):
            client.sendall([b"", b"GET /api/plans HTTP/1.1\r\nHost: localhost\r\n", b"G"][number % 3])
        with Stopwatch() as watch:
            ok(httpx.get(f"http://127.0.0.1:{port}/api/plans", trust_env=False, timeout=60))
            assert watch.seconds < 5
            for client in clients:
                client.settimeout(60)
                while client.recv(1000):
                    pass
        assert watch.seconds < 20
    finally:
        for client in clients:
            client.close()


def test_readyz_says_which_does_not_answer_and_calls_are_503_within_3_s(tmp_path: Path) -> None:
    with socket.socket() as hole:  # takes connections into its backlog and never says a word
        hole.bind(("127.0.0.1", 0))
        hole.listen()
        silent = f"127.0.0.1:{hole.getsockname()[1]}"
        port = str(free_port())
        for database, broker in ((silent, "127.0.0.1:1"), ("127.0.0.1:1", silent)):
            env = environment(f"postgresql://u:secretpw@{database}/x", tmp_path, RELEVO_BROKER_URL=f"redis://{broker}/0", RELEVO_PORT=port)
            with program("-m", "app.cli", "serve", env=env, cwd=tmp_path) as running:
                running.said("Serving at ")
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60) as client:
                    ok(client.get("/healthz"))
                    for _ in range(2):
                        with Stopwatch() as watch:
                            told = ok(client.get("/readyz"), 503)
                            away = "does not answer"
                            assert told == {"status": "not ready", "services": {"database": away, "broker": away, "workers": "none"}}
                            answer = client.get("/api/plans")
                        problem(answer, 503, "database-unreachable")
                        assert answer.headers["retry-after"] == "2"
                        assert "secretpw" not in answer.text
                        assert watch.seconds < 2 + 3 + 6
                running.process.terminate()
                assert running.ends(60) == 0
                assert "secretpw" not in "\n".join(running.lines)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"HOST": "0.0.0.0"}, "RELEVO_HOST is '0.0.0.0', which others can reach: set RELEVO_TOKENS_FILE"),
        ({"HOST": "::"}, "RELEVO_HOST is '::', which others can reach"),
        ({"HOST": "no.such.host.invalid"}, "RELEVO_HOST is 'no.such.host.invalid', which others can reach"),
        ({"HOST": "no.such.host.invalid", "TOKENS_FILE": "tokens"}, "RELEVO_HOST is 'no.such.host.invalid', which is no address"),
        ({"PORT": "0"}, "RELEVO_PORT is '0'"),
        ({"PORT": "x"}, "RELEVO_PORT is 'x'"),
        ({"PORT": "taken"}, "where somebody listens already"),
    ],
)
def test_where_it_cannot_listen_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch, given: dict[str, str], said: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for name, value in given.items():
            monkeypatch.setenv(f"RELEVO_{name}", str(taken.getsockname()[1]) if value == "taken" else value)
        with pytest.raises(SettingsError) as refused:
            listen.listen(settings.load())
    assert said in str(refused.value)


@pytest.mark.parametrize("made", [listen.listen, listen.listen_for_scrapes])
def test_no_answer_waits_for_the_acknowledgement_of_its_head(made: Callable[..., socket.socket]) -> None:
    with made(settings.load(), any_port=True) as listening, socket.create_connection(listening.getsockname()[:2]):
        taken, _ = listening.accept()
        with taken:
            assert taken.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_a_taken_port_ends_the_command_with_2(env: dict[str, str], tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", int(env["RELEVO_PORT"]))):
        done = command("serve", env=env, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1), done
    assert b"somebody listens already" in done.stderr


TOLD_EARLY = """
import signal, socket
from app import serve

async def nothing(*_):
    pass

serve.logger.info = lambda *_: signal.raise_signal(signal.SIGTERM)  # it says that it serves, and that it has stopped
serve.run(nothing, socket.create_server(("127.0.0.1", 0)), nothing)
"""


def test_told_to_end_before_it_serves_it_ends(env: dict[str, str], tmp_path: Path) -> None:
    with program("-c", TOLD_EARLY, env=env, cwd=tmp_path) as running:
        assert running.ends(60) == 0


def test_a_package_app_of_the_users_is_not_ours(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('not mine')\n")
    env = {**env, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    with program(str(ROOT / "app" / "serving.py"), env=env, cwd=tmp_path) as running:
        running.said("Serving at ")
        running.process.terminate()
        assert running.ends(60) == 0
