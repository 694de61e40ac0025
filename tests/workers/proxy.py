"""A TCP proxy that can swallow what passes through it, as a network that drops packets without a word."""

import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Proxy:
    """Forwards connections to `target`. While `swallowing`, bytes of old and new connections are read and lost."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target = target
        self.swallowing = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._stopped = False
        self._cutting = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def cut(self) -> None:
        """Close every connection that is open now; new ones are accepted."""
        self._cutting = True
        while self._cutting and self._thread.is_alive():
            time.sleep(0.01)

    def _run(self) -> None:
        while not self._stopped:
            if self._cutting:
                for key in list(self._selector.get_map().values()):
                    if key.data is not None and isinstance(key.fileobj, socket.socket):
                        self._drop(key.fileobj)
                self._cutting = False
            for key, _ in self._selector.select(0.05):
                if key.data is None:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket) and key.fileobj.fileno() >= 0:
                    self._pump(key.fileobj, key.data)

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        try:
            far = socket.create_connection(self.target, timeout=10)
        except OSError:
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            self._selector.register(one, selectors.EVENT_READ, other)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            data = source.recv(65536)
            if data and not self.swallowing:
                sink.sendall(data)
        except OSError:
            data = b""
        if not data:
            # In a hole nobody hears that the other side has gone either; its socket is closed when it speaks next.
            for end in (source,) if self.swallowing else (source, sink):
                self._drop(end)

    def _drop(self, end: socket.socket) -> None:
        if end.fileno() >= 0:
            self._selector.unregister(end)
            end.close()

    def close(self) -> None:
        """Stop, and close every connection."""
        self._stopped = True
        self._thread.join(60)
        assert not self._thread.is_alive(), "the proxy hangs"
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self._selector.close()


@contextmanager
def proxy(target: tuple[str, int]) -> Iterator[Proxy]:
    """A proxy to `target` for the block."""
    made = Proxy(target)
    try:
        yield made
    finally:
        made.close()
