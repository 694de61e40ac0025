"""uvicorn's connection with bounds in time: for a request's head, and for a client that does not take its answer.

What it has to answer by itself is a problem like any other.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http import h11_impl
from uvicorn.protocols.http.h11_impl import H11Protocol

from app import problem

HEAD_SECONDS = 10.0  # from the first byte of a request, or from the connection, to the end of its headers
TAKE_SECONDS = 30.0  # that a full send buffer may stay full
REFUSED = 100  # connections beyond those served that are answered 503; the others are closed unheard, so that files never run out


class Bounded(H11Protocol):
    """A connection that ends when its client lets it wait; uvicorn itself bounds only the pause between two requests."""

    _head: asyncio.TimerHandle | None = None
    _take: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        most = self.limit_concurrency
        if most is not None and len(self.connections) > most + REFUSED:
            transport.abort()
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for timer in (self._head, self._take):
            if timer is not None:
                timer.cancel()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._take = self.loop.call_later(TAKE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._take is not None:
            self._take.cancel()

    def _watch(self) -> None:
        # Between two requests the keep-alive timer runs; while one is answered the application bounds itself.
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or self.timeout_keep_alive_task is not None:
            if self._head is not None:
                self._head.cancel()
                self._head = None
        elif self._head is None and not self.transport.is_closing():
            self._head = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def send_400_response(self, msg: str) -> None:
        # Hook: what cannot be read as HTTP is answered by the connection itself.
        in_head = self.cycle is None or self.cycle.response_complete
        too_long = in_head and len(self.conn.trailing_data[0]) > problem.HEAD_LIMIT
        kind, sentence = (431, problem.TOO_LONG) if too_long else (400, "The request is not HTTP that can be read.")
        response = problem.answer(problem.OF_STATUS[kind], sentence, {"Connection": "close"})
        headers: Any = [*response.raw_headers]
        for event in (h11.Response(status_code=kind, headers=headers), h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


async def _too_many(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers instead of the application when there are as many connections as the server takes."""
    response = problem.answer(problem.BUSY, "The server has as many connections as it takes; try again.", {"Connection": "close"})
    await response(scope, receive, send)


# Hook: uvicorn's own answer is plain text.
_uvicorn: Any = h11_impl
_uvicorn.service_unavailable = _too_many
