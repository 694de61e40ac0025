"""Tokens: made once, kept as hashes, each with what its role may do."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from app import tokens
from app.caller import Role
from app.tokens import Tokens
from ordering import items
from ordering.errors import Invalid
from tests.app.commands import Relevo
from tests.app.web import ok, problem, serving
from tests.ordering.rivals import race
from workers.settings import SettingsError

HTTP = {"task": "http", "args": {"url": "http://127.0.0.1:1/"}}
SHELL = {"task": "shell", "args": {"command": ["true"]}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


@pytest.fixture
def shown(file: Path) -> dict[Role, dict[str, str]]:
    """The header that shows a token, by its role."""
    return {role: {"Authorization": f"Bearer {tokens.create(file, f'the-{role}', role)}"} for role in Role}


@pytest.fixture
def api(http_engine: Engine, file: Path, shown: dict[Role, dict[str, str]]) -> Iterator[httpx.Client]:
    with serving(http_engine, Tokens(file), only_loopback=False) as client:
        yield client


def test_each_role_may_do_what_it_may(api: httpx.Client, shown: dict[Role, dict[str, str]]) -> None:
    view, operate, admin = (shown[role] for role in Role)
    listed = "/api/plans/roles/items"
    problem(api.post("/api/plans", json={"name": "roles"}, headers=view), 403, "forbidden")
    ok(api.post("/api/plans", json={"name": "roles"}, headers=operate), 201)
    ok(api.get("/api/plans/roles", headers=view))
    problem(api.post("/api/plans/roles/start", headers=view), 403, "forbidden")
    problem(api.post(listed, json=SHELL, headers=operate), 403, "forbidden")
    problem(api.post(listed, json=[HTTP, SHELL], headers=operate), 403, "forbidden")
    assert ok(api.get(listed, headers=view))["items"] == []
    command = ok(api.post(listed, json=SHELL, headers=admin), 201)
    plain = ok(api.post(listed, json=HTTP, headers=operate), 201)
    problem(api.patch(f"/api/items/{command['id']}", json={"title": "x"}, headers=operate), 403, "forbidden")
    problem(api.patch(f"/api/items/{plain['id']}", json={"task": "shell"}, headers=operate), 403, "forbidden")
    problem(api.post(f"/api/items/{command['id']}/retry", json={"change": {"title": "x"}}, headers=operate), 403, "forbidden")
    ok(api.patch(f"/api/items/{command['id']}", json={"title": "x"}, headers=admin))
    events = ok(api.get(f"/api/items/{command['id']}", headers=view))["events"]
    assert [each["actor"] for each in events] == ["the-admin", "the-admin"]


def test_who_edits_does_not_overtake_who_makes_a_command_of_it(
    api: httpx.Client, http_engine: Engine, shown: dict[Role, dict[str, str]]
) -> None:
    ok(api.post("/api/plans", json={"name": "becoming"}, headers=shown[Role.OPERATE]), 201)
    item = ok(api.post("/api/plans/becoming/items", json=HTTP, headers=shown[Role.OPERATE]), 201)["id"]
    answer = race(
        http_engine,
        lambda tx: items.edit(tx, item, items.Edit(task="shell"), actor="the-admin"),
        lambda _tx: api.patch(f"/api/items/{item}", json={"args": {"command": ["id"]}}, headers=shown[Role.OPERATE]),
    )
    problem(answer, 403, "forbidden")


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer x", "Basic dGhlOmFkbWlu", "Bearer \xff\xfe", "bearer " + "x" * 9000])
def test_without_a_token_that_is_known_nobody_gets_in(api: httpx.Client, header: str) -> None:
    for method, path in (("GET", "/api/plans"), ("POST", "/api/facts"), ("GET", "/api/items/1")):
        answer = api.request(method, path, headers=[(b"Authorization", header.encode("latin-1")), (b"Content-Type", b"application/json")])
        problem(answer, 401, "unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"
    ok(api.get("/healthz"))


def test_the_same_call_key_of_two_callers_are_two_calls(api: httpx.Client, shown: dict[Role, dict[str, str]]) -> None:
    for role in (Role.OPERATE, Role.ADMIN):
        ok(api.post("/api/plans", json={"name": f"keyed-{role}"}, headers={**shown[role], "Idempotency-Key": "k"}), 201)


def test_a_running_server_notices_who_came_and_who_went(api: httpx.Client, file: Path, shown: dict[Role, dict[str, str]]) -> None:
    late = {"Authorization": f"Bearer {tokens.create(file, 'late', Role.VIEW)}"}
    ok(api.get("/api/plans", headers=late))
    lines = file.read_text().splitlines()
    file.write_text("".join(f"{line}\n" for line in lines if not line.startswith("the-")))
    problem(api.get("/api/plans", headers=shown[Role.ADMIN]), 401, "unauthenticated")
    ok(api.get("/api/plans", headers=late))
    file.write_text("nonsense\n")
    for _ in range(2):
        problem(api.get("/api/plans", headers=late), 503, "busy")
    file.unlink()
    problem(api.get("/api/plans", headers=late), 503, "busy")
    file.write_text("".join(f"{line}\n" for line in lines))
    ok(api.get("/api/plans", headers=late))


def test_commands_can_be_turned_off_for_everybody(http_engine: Engine, file: Path, shown: dict[Role, dict[str, str]]) -> None:
    with serving(http_engine, Tokens(file), only_loopback=False, shell=False) as api:
        ok(api.post("/api/plans", json={"name": "no-shell"}, headers=shown[Role.ADMIN]), 201)
        told = problem(api.post("/api/plans/no-shell/items", json=SHELL, headers=shown[Role.ADMIN]), 403, "forbidden")
        assert "RELEVO_SHELL_OVER_HTTP" in told["detail"]


def test_the_file_has_hashes_and_is_its_owners(file: Path) -> None:
    token = tokens.create(file, "ci", Role.OPERATE)
    file.write_text(f"# who may\n\n{file.read_text().strip()}  # the builds")  # no line end
    tokens.create(file, "other", Role.VIEW)
    assert token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert {(each.name, each.role) for each in tokens.read(file).values()} == {("ci", Role.OPERATE), ("other", Role.VIEW)}
    with pytest.raises(Invalid, match="has a token already"):
        tokens.create(file, "ci", Role.ADMIN)
    for name in ("", "two words", "a\nb admin", "#", "x" * 64):
        with pytest.raises(Invalid, match="NAME"):
            tokens.create(file, name, Role.ADMIN)


@pytest.mark.parametrize("line", ["ci", "ci admin", "ci root " + "0" * 64, "ci admin " + "0" * 63, "ci admin " + "0" * 64 + " a b", "\xff"])
def test_a_line_that_is_no_token_is_named(file: Path, line: str) -> None:
    file.write_text(f"# first\n{line}\n", encoding="latin-1")
    with pytest.raises(SettingsError, match="line 2"):
        Tokens(file)


def test_the_command_prints_the_token_once(relevo: Relevo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "RELEVO_TOKENS_FILE is not set" in relevo("token", "create", "ci", "--role", "view").refusal()
    monkeypatch.setenv("RELEVO_TOKENS_FILE", str(tmp_path / "tokens"))
    answer = relevo("token", "create", "ci", "--role", "operate")
    assert (answer.code, answer.out.count("\n")) == (0, 1)
    assert tokens.read(tmp_path / "tokens")[tokens._hash(answer.out.strip())].name == "ci"
    assert "has a token already" in relevo("token", "create", "ci", "--role", "view").refusal()
    monkeypatch.setenv("RELEVO_TOKENS_FILE", str(tmp_path / "nowhere" / "tokens"))
    assert "cannot be written" in relevo("token", "create", "ci", "--role", "view").refusal()
