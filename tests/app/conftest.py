"""Commands to call, on a database of the test's own."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from app import web
from ordering import db
from tests import servers
from tests.app.commands import Relevo
from tests.app.web import http_database, ok, serving
from tests.cases.proxy import Proxy, before_database


@pytest.fixture
def relevo(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Relevo:
    """Commands on a database of this test alone, in a folder without a catalogue."""
    monkeypatch.setenv("RELEVO_DATABASE_URL", database_url)
    monkeypatch.setenv("RELEVO_BROKER_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("RELEVO_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return Relevo(capsys)


@pytest.fixture
def line(relevo: Relevo) -> Relevo:
    """As `relevo`, with a plan `line` of three items: 1, 2 and 3."""
    relevo("plan", "create", "line")
    for title in ("one", "two", "three"):
        assert relevo("add", "line", "shell", '{"command": ["true"]}', "--title", title).code == 0
    return relevo


@pytest.fixture(scope="module")
def http_engine(server_url: str, template: str) -> Iterator[Engine]:
    """A database of this module, as the HTTP server uses it."""
    with http_database(server_url, template) as made:
        yield made


@pytest.fixture(scope="module")
def api(http_engine: Engine) -> Iterator[httpx.Client]:
    """A client of an HTTP server of this module; each test uses plans of its own."""
    with serving(http_engine) as client:
        yield client


@pytest.fixture
def behind_proxy(database_url: str) -> Iterator[tuple[httpx.Client, Proxy]]:
    """A client of a server whose Postgres is behind a line that can be cut."""
    proxy, url = before_database(database_url)
    engine = db.engine(url, settings=web.SESSION)
    try:
        with serving(engine) as client:
            ok(client.post("/api/plans", json={"name": "line"}), 201)
            yield client, proxy
    finally:
        proxy.close()
        servers.close(engine)
