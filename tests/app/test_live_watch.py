"""The watch behind the stream: neither an error that nobody foresaw nor a moment without threads leaves a server that tells nothing."""

import threading

import httpx
import pytest
from sqlalchemy import Connection, Engine

from ordering import changes
from tests.app.processes import until
from tests.app.sse import listening
from tests.app.web import ok, problem, serving
from tests.servers import fresh_name


def told(client: httpx.Client) -> None:
    """A new listener hears of an act."""
    with listening(client) as stream:
        until(lambda: stream.place, 30, "the stream begins")
        ok(client.post("/api/plans", json={"name": fresh_name("line")}), 201)
        stream.wait("trail")


def test_the_watch_goes_on_after_an_error_of_any_kind(
    http_engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seals, raised = changes.seals, list[str]()

    def failing(tx: Connection) -> object:
        if not raised:
            raised.append("once")
            raise AssertionError
        return seals(tx)

    monkeypatch.setattr(changes, "seals", failing)
    with serving(http_engine) as client:
        told(client)
    assert raised
    assert "A look for changes failed; the next one is in a second." in caplog.messages
    assert "What happens cannot be told until Postgres is read again: AssertionError" in caplog.messages


def test_a_watch_that_got_no_thread_is_started_for_the_next_listener(http_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    start, refused = threading.Thread.start, list[str]()

    def starting(thread: threading.Thread) -> None:
        if thread.name == "live watch" and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starting)
    with serving(http_engine) as client:
        problem(client.get("/api/events/stream"), 503, "busy")
        told(client)
    assert refused
