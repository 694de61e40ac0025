"""The sockets that the HTTP server and the exporter listen on: at a fixed port, or at a free one."""

from __future__ import annotations

import errno
import os
import socket

from workers.loopback import is_loopback
from workers.settings import Settings, SettingsError

DEFAULT_PORT = 8000
DEFAULT_EXPORTER_PORT = 9464
BACKLOG = 256
#: The number of the listening socket's descriptor, where `relevo up` made it: a server that is restarted refuses nobody meanwhile.
LISTEN_FD = "RELEVO_LISTEN_FD"


class PortTaken(SettingsError):
    """Somebody listens there already."""


def check_host(settings: Settings) -> None:
    """Raise SettingsError if others could reach the server and nobody is asked for a token."""
    if settings.tokens_file is None and not is_loopback(settings.host):
        raise SettingsError(
            f"RELEVO_HOST is {settings.host!r}, which others can reach: set RELEVO_TOKENS_FILE (`relevo token create` makes a token), "
            "or leave RELEVO_HOST out to serve this machine only."
        )


def listen(settings: Settings, *, any_port: bool = False) -> socket.socket:
    """Listen on the host and the port of `settings`, or DEFAULT_PORT; on a free port if that is taken and `any_port`.

    Raises PortTaken, SettingsError.
    """
    check_host(settings)
    return _listening("RELEVO", settings.host, settings.port, DEFAULT_PORT, any_port)


def listen_for_scrapes(settings: Settings, *, any_port: bool = False) -> socket.socket:
    """As `listen`, for the exporter, which tells figures and names of plans and tasks to whoever reaches it."""
    return _listening("RELEVO_EXPORTER", settings.exporter_host, settings.exporter_port, DEFAULT_EXPORTER_PORT, any_port)


def _listening(prefix: str, host: str, port: int | None, default: int, any_port: bool) -> socket.socket:
    try:
        return _bound(prefix, host, port or default)
    except PortTaken:
        if not any_port or port is not None:
            raise
        return _bound(prefix, host, 0)


def _bound(prefix: str, host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError):
        raise SettingsError(f"{prefix}_HOST is {host[:100]!r}, which is no address of this machine.") from None
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Linux gives it to every connection. Else a body sent behind its head waits 40 ms for the client to acknowledge the head.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(f"{prefix}_PORT is {port}, where somebody listens already: set another one.") from None
        raise SettingsError(f"{prefix}_HOST and {prefix}_PORT: {host}:{port} cannot be listened on ({error.strerror}).") from None
    return made


def inherited() -> socket.socket | None:
    """The socket that whoever started this process listens on for it, if there is one."""
    number = os.environ.pop(LISTEN_FD, None)
    return None if number is None else socket.socket(fileno=int(number))


def url_of(listening: socket.socket) -> str:
    """Where the server is reached."""
    host, port = listening.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
