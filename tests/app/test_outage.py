"""The HTTP server while Postgres is away, hangs or is held by somebody: a bounded answer, and all is well afterwards."""

import socket
import threading
from contextlib import ExitStack, suppress

import httpx
import pytest
from sqlalchemy import Engine, text

from app import api_call, serve, slow_clients
from tests.app.processes import until
from tests.app.test_door import raw
from tests.app.web import ok, problem, serving
from tests.cases.proxy import Proxy
from tests.patience import Stopwatch


@pytest.mark.parametrize("how", ["refusing", "swallowing"])
def test_away_is_503_within_3_s_and_back_is_200(behind_proxy: tuple[httpx.Client, Proxy], how: str) -> None:
    client, proxy = behind_proxy
    setattr(proxy, how, True)
    if how == "refusing":
        proxy.cut()
    for _ in range(3):
        with Stopwatch() as watch:
            answers = [client.get("/api/plans"), client.post("/api/plans", json={"name": "other"})]
        assert watch.seconds < 2 * (3 + 4)
        for answer in answers:
            problem(answer, 503, "database-unreachable")
            assert answer.headers["retry-after"] == "2"
        ok(client.get("/healthz"))
    setattr(proxy, how, False)
    proxy.cut()
    until(lambda: client.get("/api/plans").status_code == 200, 30, "calls are answered again")
    assert [each["name"] for each in ok(client.get("/api/plans"))["items"]] == ["line"]


def test_a_server_that_hangs_in_the_middle_of_a_call_ends_it(
    behind_proxy: tuple[httpx.Client, Proxy], engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, proxy = behind_proxy
    monkeypatch.setattr(api_call, "CALL_SECONDS", 6.0)
    answers = list[httpx.Response]()
    with engine.begin() as held:
        held.execute(text("select from relevo.plan where name = 'line' for update"))
        call = threading.Thread(target=lambda: answers.append(client.post("/api/plans/line/start")))
        call.start()
        waits = text("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()")
        until(lambda: held.execute(waits).scalar_one() == 1, 30, "the call waits for the plan")
        proxy.swallowing = True
        call.join(60)
    problem(answers[0], 503, "database-unreachable")
    proxy.swallowing = False
    proxy.cut()
    until(lambda: client.get("/api/plans").status_code == 200, 30, "calls are answered again")


def test_a_plan_that_somebody_holds_is_busy(behind_proxy: tuple[httpx.Client, Proxy], engine: Engine) -> None:
    client, _ = behind_proxy
    with engine.begin() as held:
        held.execute(text("select from relevo.plan where name = 'line' for update"))
        with Stopwatch() as watch:
            answer = client.post("/api/plans/line/items", json={"task": "http"})
        problem(answer, 503, "busy")
        assert watch.seconds < 3 + 6
        ok(client.get("/api/plans/line"))  # whoever looks is not held up
    ok(client.post("/api/plans/line/items", json={"task": "http"}), 201)


def test_a_client_that_takes_no_answer_is_given_up(behind_proxy: tuple[httpx.Client, Proxy], monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = behind_proxy
    monkeypatch.setattr(slow_clients, "TAKE_SECONDS", 0.5)
    with socket.create_connection((client.base_url.host, client.base_url.port or 80), timeout=60) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        requests = b"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200_000
        with pytest.raises(ConnectionError):  # more answers than all buffers between us hold
            deaf.sendall(requests)
    ok(client.get("/healthz"))


def test_more_connections_than_it_takes_are_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "CONNECTIONS", 1)
    with serving(engine) as client:
        problem(client.get("/healthz"), 503, "busy")


def test_far_more_connections_are_closed_unheard_so_that_files_never_run_out(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "CONNECTIONS", 10)
    monkeypatch.setattr(slow_clients, "REFUSED", 10)
    with serving(engine) as client, ExitStack() as opened:
        address = (client.base_url.host, client.base_url.port or 80)
        many = [opened.enter_context(socket.create_connection(address, timeout=60)) for _ in range(21)]
        assert many[-1].recv(1) == b""
        many[0].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert many[0].recv(1000).startswith(b"HTTP/1.1 503 ")
        for each in many:
            each.close()

        def served() -> bool:
            with suppress(httpx.TransportError):
                return client.get("/healthz").status_code == 200
            return False

        until(served, 30, "it serves again")


def test_a_body_that_comes_too_slowly_is_refused(behind_proxy: tuple[httpx.Client, Proxy], monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = behind_proxy
    monkeypatch.setattr("app.door.BODY_SECONDS", 0.3)
    head = b"POST /api/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    assert raw(client, head + b"{").startswith(b"HTTP/1.1 408 ")
