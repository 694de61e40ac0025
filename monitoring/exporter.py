"""The exporter: an HTTP server that answers `GET /metrics` with the figures of that moment. It keeps nothing between two scrapes."""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from sqlalchemy import Engine

from monitoring import figures
from monitoring.collector import Figured

logger = logging.getLogger(__name__)
SLOWEST_CLIENT = 10  # seconds without a byte until a client is given up
CLIENTS = 50  # connections, each with a thread; one more takes the place of the one that has asked for nothing for the longest time
PAGE = b"Relevo's exporter. The figures are at /metrics.\n"


class Exporter(ThreadingHTTPServer):
    """Serves `registry` on a socket that listens already."""

    daemon_threads = True

    def __init__(self, listening: socket.socket, registry: CollectorRegistry) -> None:
        super().__init__(listening.getsockname()[:2], Scrape, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.registry = registry
        self._clients = dict[socket.socket, None]()  # the one that has asked for nothing for the longest time first
        self._lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve it in a thread of its own. A crowd that asks for nothing neither fills this process nor shuts out a scraper."""
        with self._lock:
            self._clients[request] = None
            if len(self._clients) > CLIENTS:
                idlest = next(iter(self._clients))
                del self._clients[idlest]
                with suppress(OSError):
                    idlest.shutdown(socket.SHUT_RDWR)  # its thread reads the end, and closes it
        super().process_request(request, client_address)

    def asked(self, request: socket.socket) -> None:
        """Something is asked for on this connection: a scraper keeps its own for days."""
        with self._lock:
            if request in self._clients:
                self._clients[request] = self._clients.pop(request)

    def shutdown_request(self, request: Any) -> None:
        """Close the connection, also where it got no thread."""
        with self._lock:
            self._clients.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone is none of our business; what is a fault of ours is told."""
        logger.debug("A scrape ended early.", exc_info=True)


class Scrape(BaseHTTPRequestHandler):
    """One request."""

    server: Exporter
    protocol_version = "HTTP/1.1"
    timeout = SLOWEST_CLIENT
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(message)s.\n"

    def do_GET(self) -> None:
        """The figures, in the format that the scraper prefers."""
        self.server.asked(self.connection)
        match urlsplit(self.path).path:
            case "/metrics":
                try:
                    encode, kind = choose_encoder(self.headers.get("Accept", ""))
                    body = encode(self.server.registry)
                except Exception:
                    logger.exception("A scrape failed.")
                    self._answer(500, "text/plain; charset=utf-8", b"The figures could not be gathered; the log says why.\n")
                else:
                    self._answer(200, kind, body)
            case "/healthz":  # the process answers, whatever its sources do
                self._answer(200, "text/plain; charset=utf-8", b"ok\n")
            case "/":
                self._answer(200, "text/plain; charset=utf-8", PAGE)
            case _:
                self._answer(404, "text/plain; charset=utf-8", PAGE)

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET  # monitors like to ask by it

    def version_string(self) -> str:
        """No word of what serves."""
        return "relevo"

    def log_message(self, format: str, *args: object) -> None:
        """Scrapes are no news."""


def registry(engine: Engine, broker: Callable[[Sequence[str]], Mapping[str, int]]) -> CollectorRegistry:
    """A registry with our figures and nothing of this process, so that every exporter says the same.

    engine: from `figures.engine`. broker: how many messages it holds, by queue; it raises what it likes, and may hang.
    """

    def read() -> figures.Figures:
        with engine.connect() as tx:
            return figures.read(tx)

    made = CollectorRegistry()
    made.register(Figured(read, broker))
    return made


def run(listening: socket.socket, gathered: CollectorRegistry, ready: Callable[[], None]) -> None:
    """Serve until TERM or INT; `ready` is called once it serves. In the main thread."""
    server = Exporter(listening, gathered)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    serving = threading.Thread(target=server.serve_forever, name="exporter", daemon=True)
    serving.start()
    ready()
    while not stopped.wait(1.0):  # not for ever: nothing is heard there of a signal that came just before
        pass
    server.shutdown()
    server.server_close()
