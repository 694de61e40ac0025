"""Without tokens the server knows which user of this machine calls."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app import peer
from tests.app.web import ok, problem, serving

SHELL = {"task": "shell", "args": {"command": ["true"]}}


@pytest.fixture(params=["asked", "listed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the kernel says it: asked for one connection, or, where it takes no such question, by its table of all."""
    if request.param == "listed":
        monkeypatch.setattr(peer, "SOCK_DIAG", 31)  # a protocol of netlink that there is not
    else:
        monkeypatch.setattr(peer, "TABLES", ())
    return str(request.param)


NOBODY = 65_534
CONNECT = """import encodings.idna, os, socket, sys  # the first, since another user may not read the standard library
os.setgid(65534); os.setuid(65534)
with socket.create_connection(sys.argv[1:3]) as client:
    print(client.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_the_owner_of_a_connection_is_found(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server, socket.create_connection(server.getsockname()[:2]) as client:
        taken, _ = server.accept()
        with taken:
            assert peer.uid_of(client.getsockname()[:2], taken.getsockname()[:2]) == os.getuid()
        assert peer.uid_of(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
        assert peer.uid_of(server.getsockname()[:2], ("127.0.0.1" if address == "127.0.0.1" else "::1", 1)) is None, "it listens"
    assert peer.uid_of(None, None) is None


@pytest.mark.root
@pytest.mark.usefixtures("way")
@pytest.mark.skipif(os.getuid() != 0, reason="needs root: becomes another user")
def test_another_user_is_known_for_himself() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        whole = [sys.executable, "-c", CONNECT, *map(str, server.getsockname())]
        with subprocess.Popen(whole, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            port = int(other.stdout.readline())
            assert peer.uid_of(("127.0.0.1", port), server.getsockname()) == NOBODY
            other.communicate(timeout=60)


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
