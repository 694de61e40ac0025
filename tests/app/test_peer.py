"""Without tokens the server knows which user of this machine calls."""

import os
import socket
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app import peer
from tests.app.web import ok, problem, serving

SHELL = {"task": "shell", "args": {"command": ["true"]}}


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_owner_of_a_connection_is_found(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server, socket.create_connection(server.getsockname()[:2]) as client:
        taken, _ = server.accept()
        with taken:
            assert peer.uid_of(client.getsockname()[:2], taken.getsockname()[:2]) == os.getuid()
    assert peer.uid_of(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert peer.uid_of(None, None) is None


def test_a_call_by_the_servers_own_user_may_do_anything_and_has_a_name(http_engine: Engine) -> None:
    with serving(http_engine, peer.known) as api:
        ok(api.post("/api/plans", json={"name": "peer-own"}), 201)
        item = ok(api.post("/api/plans/peer-own/items", json=SHELL), 201)
        events = ok(api.get(f"/api/items/{item['id']}"))["events"]
        assert events[0]["actor"] == peer.name_of(os.getuid())


def test_another_user_is_refused_and_an_unknown_one_runs_no_commands(
    http_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(http_engine, peer.known) as api:
        monkeypatch.setattr(peer, "uid_of", lambda client, server: 12_345)
        problem(api.get("/api/plans"), 401, "unauthenticated")
        problem(api.post("/api/plans", json={"name": "peer-other"}), 401, "unauthenticated")
        monkeypatch.setattr(peer, "uid_of", lambda client, server: None)
        ok(api.post("/api/plans", json={"name": "peer-other"}), 201)
        problem(api.post("/api/plans/peer-other/items", json=SHELL), 403, "forbidden")
