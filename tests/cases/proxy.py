"""A TCP proxy in front of Postgres or a broker that can cut, delay, swallow and refuse, as networks do."""

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from kombu.utils.url import parse_url
from sqlalchemy import make_url

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    """Forwards `listen`:`port` to `host` and `target_port`, or to a Unix socket when `host` is a path.

    While `swallowing`, nothing comes through; while `refusing`, new connections are closed at once; each piece waits `delay` seconds.
    """

    def __init__(self, host: str, target_port: int, listen: str = "127.0.0.1") -> None:
        self.swallowing = self.refusing = False
        self.delay = 0.0
        self.port = 0
        self._listen = listen
        self._host, self._target_port = host, target_port
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server: asyncio.Server = self._call(self._serve())
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Close every connection that is open now; new ones are accepted."""
        self._call(self._cut())

    def close(self) -> None:
        """Stop listening and close every connection."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    async def _serve(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, self._listen, 0)

    async def _target(self) -> Streams:
        if self._host.startswith("/"):
            return await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._target_port}")
        return await asyncio.open_connection(self._host, self._target_port)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        self._open |= ends  # from the first moment, and until each is closed: what is not here when this closes stays open
        try:
            if self.refusing:
                raise ConnectionRefusedError
            far_reader, far_writer = await self._target()
            ends.add(far_writer)
            self._open |= ends
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in ends:
                end.close()
            with suppress(OSError, asyncio.CancelledError):
                await asyncio.gather(*(end.wait_closed() for end in ends))  # one that takes nothing is closed with this
            self._open -= ends

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if self.delay:
                    await asyncio.sleep(self.delay)
                await self._hole()
                sink.write(data)
                await sink.drain()
        await self._hole()  # nobody hears in it that the other side has gone either
        sink.close()

    async def _hole(self) -> None:
        # TCP loses nothing in the middle of a connection: what was sent into a hole is sent again, until one side gives up.
        while self.swallowing:
            await asyncio.sleep(0.05)

    async def _cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _close(self) -> None:
        # What was accepted just now is a task that has not begun: cancelled, or without its server, it would close nothing.
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        for _ in range(10):
            await asyncio.sleep(0)
        self._server.close()
        self.swallowing = False
        await self._cut()
        current = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not current]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def before_database(url: str) -> tuple[Proxy, str]:
    """A proxy in front of the Postgres of `url`, and the URL that leads through it."""
    parsed = make_url(url)
    host = parsed.query.get("host") or parsed.host or "127.0.0.1"
    assert isinstance(host, str)
    made = Proxy(host, int(str(parsed.query.get("port") or parsed.port or 5432)))
    through = parsed.set(host="127.0.0.1", port=made.port).difference_update_query(["host", "port"])
    return made, through.render_as_string(hide_password=False)


def before_broker(url: str) -> tuple[Proxy, str]:
    """A proxy in front of the broker of `url`, and the URL that leads through it."""
    parts = parse_url(url)
    made = Proxy(parts["hostname"], parts["port"])
    return made, url.replace(f"{parts['hostname']}:{parts['port']}", f"127.0.0.1:{made.port}")
