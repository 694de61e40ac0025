"""Signing in: a token as a cookie, by which a browser may do what its role may, and no other site may do anything."""

import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from app import login, tokens
from app.buckets import Buckets
from app.caller import Role
from app.tokens import Tokens
from tests.app import pages
from tests.app.web import ok, problem, serving
from tests.servers import fresh_name


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens") / "tokens"


@pytest.fixture(scope="module")
def made(file: Path) -> dict[Role, str]:
    return {role: tokens.create(file, f"the-{role}", role) for role in Role}


@pytest.fixture(scope="module")
def server(http_engine: Engine, file: Path, made: dict[Role, str]) -> Iterator[httpx.Client]:
    with serving(http_engine, Tokens(file), only_loopback=False) as client:
        yield client


@pytest.fixture
def browser(server: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A browser with cookies of its own."""
    monkeypatch.setattr(login, "SLOW", 0.0)
    with httpx.Client(base_url=server.base_url, timeout=20, trust_env=False) as client:
        yield client


def origin(client: httpx.Client) -> str:
    return str(client.base_url).rstrip("/")


def sign_in(browser: httpx.Client, token: str, back: str = "/") -> httpx.Response:
    return pages.send(browser, "/login", {"token": token, "back": back})


def test_a_page_asks_for_a_token_and_comes_back(browser: httpx.Client, made: dict[Role, str]) -> None:
    asked = browser.get("/?text=a%20b", headers=pages.HTML)
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?back=/%3Ftext%3Da%2Bb")
    assert 'name="token"' in pages.get(browser, asked.headers["location"])
    answer = sign_in(browser, f" {made[Role.VIEW]} ", "/?text=a+b")
    assert (answer.status_code, answer.headers["location"]) == (303, "/?text=a+b")
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert "Secure" not in cookie
    assert "the-view" in pages.get(browser, "/?text=a+b")


def test_over_tls_the_cookie_is_secure(browser: httpx.Client, made: dict[Role, str]) -> None:
    answer = pages.send(browser, "/login", {"token": made[Role.VIEW]}, **{"X-Forwarded-Proto": "https"})
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example", "/\\evil.example", "/api/plans", "/login", "x"])
def test_nobody_is_sent_elsewhere(browser: httpx.Client, made: dict[Role, str], back: str) -> None:
    assert sign_in(browser, made[Role.VIEW], back).headers["location"] == "/"


def test_a_wrong_token_is_said_and_logged(
    browser: httpx.Client, server: httpx.Client, made: dict[Role, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        answer = sign_in(browser, "relevo_wrong", "/plans/x")
    assert answer.status_code == 403
    assert "This token is not known" in pages.alert(answer.text)
    assert 'value="/plans/x"' in answer.text
    assert "relevo_wrong" not in answer.text + caplog.text
    assert "set-cookie" not in answer.headers
    assert "A wrong token was shown at the login from 127.0.0.1" in caplog.text


def test_many_wrong_tokens_have_to_wait_and_a_right_one_has_not(
    http_engine: Engine, file: Path, made: dict[Role, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "SLOW", 0.0)
    monkeypatch.setattr(login, "WRONG", 2)
    monkeypatch.setattr(login, "WRONG_RATE", 0.001)  # none more, however slow this machine is
    with serving(http_engine, Tokens(file), only_loopback=False) as client:
        codes = [sign_in(client, "wrong").status_code for _ in range(4)]
        assert codes == [403, 403, 429, 429]
        assert int(sign_in(client, "wrong").headers["retry-after"]) >= 1
        assert sign_in(client, made[Role.VIEW]).status_code == 303


def test_the_cookie_may_do_what_its_role_may(browser: httpx.Client, made: dict[Role, str]) -> None:
    name = fresh_name("cookie")
    sign_in(browser, made[Role.OPERATE])
    json = {"Origin": origin(browser)}
    ok(browser.post("/api/plans", json={"name": name}, headers=json), 201)
    problem(browser.post(f"/api/plans/{name}/items", json={"task": "shell"}, headers=json), 403, "forbidden")
    (created,) = ok(browser.get("/api/events", params={"plan": name}))["items"]
    assert created["actor"] == "the-operate"
    sign_in(browser, made[Role.VIEW])
    problem(browser.post(f"/api/plans/{name}/start", json={}, headers=json), 403, "forbidden")


def test_a_bearer_token_goes_before_the_cookie(browser: httpx.Client, made: dict[Role, str]) -> None:
    sign_in(browser, made[Role.ADMIN])
    bearer = {"Authorization": f"Bearer {made[Role.VIEW]}"}
    problem(browser.post("/api/plans", json={"name": fresh_name("bearer")}, headers=bearer), 403, "forbidden")
    problem(browser.get("/api/plans", headers={"Authorization": "Bearer wrong"}), 401, "unauthenticated")


CROSS = [{}, {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}]


@pytest.mark.parametrize("headers", CROSS)
def test_another_site_s_page_can_do_nothing_with_the_cookie(browser: httpx.Client, made: dict[Role, str], headers: dict[str, str]) -> None:
    name = fresh_name("cross")
    sign_in(browser, made[Role.ADMIN])
    problem(browser.post("/api/plans", json={"name": name}, headers=headers), 403, "forbidden")
    form = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    for path in ("/plans", "/login", "/logout"):
        answer = browser.post(path, content=f"name={name}&token={made[Role.VIEW]}", headers=form)
        assert answer.status_code in (403, 404), path
        assert "set-cookie" not in answer.headers
    problem(browser.get(f"/api/plans/{name}"), 404, "unknown-plan")


def test_our_own_page_is_known_by_either_header(browser: httpx.Client, made: dict[Role, str]) -> None:
    sign_in(browser, made[Role.OPERATE])
    for headers in ({"Origin": origin(browser)}, {"Sec-Fetch-Site": "same-origin"}):
        ok(browser.post("/api/plans", json={"name": fresh_name("own")}, headers=headers), 201)


def test_signed_out_is_out(browser: httpx.Client, made: dict[Role, str]) -> None:
    sign_in(browser, made[Role.VIEW])
    ok(browser.get("/api/plans"))
    answer = pages.send(browser, "/logout")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    problem(browser.get("/api/plans"), 401, "unauthenticated")


def test_a_token_that_is_taken_back_is_out(browser: httpx.Client, file: Path) -> None:
    before = file.read_text()
    token = tokens.create(file, "gone", Role.VIEW)
    sign_in(browser, token)
    ok(browser.get("/api/plans"))
    file.write_text(before)
    problem(browser.get("/api/plans"), 401, "unauthenticated")


def test_on_loopback_without_tokens_nobody_signs_in(api: httpx.Client) -> None:
    assert api.get("/login?back=/trail", headers=pages.HTML).headers["location"] == "/trail"
    assert "set-cookie" not in sign_in(api, "anything").headers


def test_what_is_refused_is_logged_once_with_who_and_why(
    http_engine: Engine, file: Path, made: dict[Role, str], caplog: pytest.LogCaptureFixture
) -> None:
    bearer = {"Authorization": f"Bearer {made[Role.VIEW]}"}
    with serving(http_engine, Tokens(file), only_loopback=False) as client, caplog.at_level(logging.WARNING):
        for _ in range(3):
            problem(client.post("/api/facts", json={"type": "x"}, headers=bearer), 403, "forbidden")
        problem(client.get("/api/plans/%0Afake", headers={"Authorization": "Bearer x"}), 401, "unauthenticated")
        problem(client.post("/api/facts", content=b"x" * (2**20 + 1), headers=bearer), 413, "too-large")
    assert [record.getMessage() for record in caplog.records if record.name == "app.refusals"] == [
        "Refused (403) to the-view at 127.0.0.1: POST /api/facts: This needs the role operate, and the-view has the role view.",
        "Refused (401) to 127.0.0.1: GET /api/plans/ fake: The token is not known: send one as `Authorization: Bearer TOKEN`, or sign in.",
        "Refused (413) to 127.0.0.1: POST /api/facts: The body has more than 1048576 bytes; send less at a time.",
    ]


def test_a_caller_who_does_not_stop_is_told_to_wait(
    http_engine: Engine, file: Path, made: dict[Role, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.api_call.RATE", 0.01)
    monkeypatch.setattr("app.api_call.BURST", 3.0)
    with serving(http_engine, Tokens(file), only_loopback=False) as client:
        busy, other = ({"Authorization": f"Bearer {made[role]}"} for role in (Role.VIEW, Role.OPERATE))
        for _ in range(3):
            ok(client.get("/api/plans", headers=busy))
        answer = client.get("/api/plans", headers=busy)
        assert problem(answer, 429, "too-many")["detail"] == "0.01 calls a second are served to one caller; wait a moment."
        assert 0 < int(answer.headers["retry-after"]) <= 100
        ok(client.get("/api/plans", headers=other))
        ok(client.get("/healthz"))


def test_a_bucket_fills_at_its_rate_and_forgets_who_is_full() -> None:
    now = 0.0
    buckets = Buckets(2.0, 4.0, clock=lambda: now)
    assert [buckets.take("a") for _ in range(5)] == [0, 0, 0, 0, 0.5]
    now = 0.25
    assert buckets.take("a") == pytest.approx(0.25)
    now = 1.0
    assert [buckets.take("a") for _ in range(3)] == [0, 0, 0.5]
    assert buckets.take("b") == 0
