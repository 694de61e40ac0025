"""The HTTP server for tests: the real application behind the real uvicorn, in a thread, on a database of the test's own."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import Engine

from app import listen, serve, web
from app.audience import Live
from app.caller import Caller, Known, Role
from app.health import Readiness
from ordering import db
from tests import servers
from tests.patience import wait_until

LOOKS: dict[str, Callable[[], str | None]] = {"database": lambda: None, "broker": lambda: None}


@contextmanager
def http_database(server_url: str, template: str) -> Iterator[Engine]:
    """A database for the block, as the HTTP server uses it."""
    with servers.database(server_url, template) as url:
        made = db.engine(url, settings=web.SESSION)
        try:
            yield made
        finally:
            servers.close(made)


@contextmanager
def serving(
    engine: Engine,
    known: Known = lambda request: Caller("http", Role.ADMIN),
    *,
    only_loopback: bool = True,
    shell: bool = True,
    looks: dict[str, Callable[[], str | None]] | None = None,
    catalogue: Path | None = None,
    beside: Mapping[str, str] | None = None,
    port: int = 0,
) -> Iterator[httpx.Client]:
    """A client of a server that lives for the block, at a free port unless one is given."""
    readiness = Readiness(looks or LOOKS)
    app = web.application(engine, readiness, known, only_loopback=only_loopback, shell=shell, catalogue=catalogue, beside=beside or {})
    listening = servers.listening(port)
    server = serve.Server(serve.configured(app), readiness.look)
    url = listen.url_of(listening)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        with httpx.Client(base_url=url, timeout=60, headers={"Content-Type": "application/json"}, trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(60)
    assert not thread.is_alive()
    # Or it would meet the end of its database in the midst of another test, and tell that test's log of it.
    live: Live = app._app.state.live  # type: ignore[attr-defined]
    wait_until(lambda: live._watch is None, 60, "the watch has ended")


def ok(response: httpx.Response, status: int = 200) -> Any:
    """The body of a call that worked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


def problem(response: httpx.Response, status: int, word: str) -> dict[str, Any]:
    """The problem of a call that did not work; asserts that it is one, of this status and type."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    told: dict[str, Any] = response.json()
    assert told["type"] == f"urn:relevo:problem:{word}", told
    assert told["status"] == status
    assert told["title"]
    assert told["detail"]
    assert "Traceback" not in response.text
    return told
