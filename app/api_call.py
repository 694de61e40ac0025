"""One call over HTTP: who calls, a connection within a bound, the transaction of its verb, and an answer that can be repeated."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

import psycopg
from anyio import CapacityLimiter, to_thread
from fastapi import Depends, Header, Query, Request
from pydantic import BeforeValidator
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.responses import Response

from app import api_query
from app.buckets import Buckets
from app.caller import Caller, Known, Role
from app.door import BODY, WRITES
from app.problem import Refused
from app.refusals import CALLER
from app.show import shallow
from ordering import calls, db
from ordering.errors import DatabaseUnreachable

T = TypeVar("T")
CONNECT_SECONDS = 2.5  # for a connection: a full pool, a server that is away or a network that drops everything
CALL_SECONDS = 20.0  # for all that a call does in Postgres; a server that hangs bounds nothing itself
RATE, BURST = 200.0, 1000.0  # calls of one caller: a second, and at once
PAGE, LONGEST_PAGE = 100, 500  # items of a list
REPLAYED = "Idempotent-Replayed"


def written(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """The response that holds `value` as JSON."""
    return _response(_dumped(value), status, headers)


def _dumped(value: Any) -> str:
    return json.dumps(value, default=shallow, ensure_ascii=False)


def _response(body: str, status: int, headers: Mapping[str, str] | None = None) -> Response:
    return Response(body.encode(), status, dict(headers or {}), "application/json")


@dataclass(frozen=True)
class Call:
    """A call that may be answered: its verbs run on `connection`, each in a transaction of its own."""

    connection: Connection
    caller: Caller
    key: str | None
    digest: str
    shell: bool
    catalogue: Path | None

    @property
    def actor(self) -> str:
        """The name that the trail keeps."""
        return self.caller.name

    def read(self, verb: Callable[[Connection], T]) -> T:
        """What `verb` finds."""
        return db.transact(self.connection, verb)

    def write(
        self, verb: Callable[[Connection], T], status: Callable[[T], int] | int = 200, body: Callable[[T], Any] = lambda done: done
    ) -> Response:
        """Run `verb` and answer with the `body` of what it returns.

        A call whose Idempotency-Key was seen is answered as the first time, and its verb is not run.
        """

        def once(tx: Connection) -> tuple[calls.Answer, bool]:
            if self.key is not None:
                known = calls.begin(tx, self.caller.name, self.key, self.digest)
                if known is not None:
                    return known, True
            done = verb(tx)
            answer = calls.Answer(status(done) if callable(status) else status, _dumped(body(done)))
            if self.key is not None:
                calls.end(tx, self.caller.name, self.key, answer)
            return answer, False

        answer, again = db.transact(self.connection, once)
        return _response(answer.body, answer.status, {REPLAYED: "true"} if again else None)


@dataclass(frozen=True)
class Server:
    """What the calls of one server share."""

    engine: Engine
    known: Known
    shell: bool  # whether items of the task shell may be added and edited at all
    connecting: CapacityLimiter
    closing: CapacityLimiter  # apart: behind threads that all wait for a connection nobody could give one back
    catalogue: Path | None = None  # the file whose entries run-all adds; it need not be there
    pace: Buckets = field(default_factory=lambda: Buckets(RATE, BURST))


async def _connection(server: Server) -> Connection:
    def connect() -> Connection:
        with db.reachable():
            return server.engine.connect()

    # The thread cannot be stopped: what it gets after all goes back to the pool.
    wanted = asyncio.ensure_future(to_thread.run_sync(connect, limiter=server.connecting))
    try:
        return await asyncio.wait_for(asyncio.shield(wanted), CONNECT_SECONDS)
    except PoolTimeout:
        raise Refused(503, "Every connection to Postgres is in use; try again.") from None
    except TimeoutError:
        wanted.add_done_callback(_give_back)
        raise DatabaseUnreachable(f"Postgres gave no connection within {CONNECT_SECONDS:g} s; nothing was changed.") from None


def _give_back(wanted: asyncio.Future[Connection]) -> None:
    if not wanted.cancelled() and wanted.exception() is None:
        wanted.result().close()


def cut(connection: Connection) -> None:
    """End the connection under the thread that waits for an answer on it."""
    with suppress(OSError, SQLAlchemyError, psycopg.Error, AttributeError):  # whoever waited may be giving it back at this moment
        driver: Any = connection.connection.dbapi_connection
        with socket.socket(fileno=os.dup(driver.fileno())) as line:
            line.shutdown(socket.SHUT_RDWR)


async def _call(
    request: Request,
    idempotency_key: Annotated[
        str | None, Header(description="The same key and the same call again get the same answer; another call is refused. Kept for a day.")
    ] = None,
) -> AsyncIterator[Call]:
    server: Server = request.app.state.server
    caller = await to_thread.run_sync(server.known, request)
    request.scope[CALLER] = caller.name
    wait = server.pace.take(caller.name)
    if wait > 0:
        raise Refused(429, f"{RATE:g} calls a second are served to one caller; wait a moment.", {"Retry-After": str(math.ceil(wait))})
    request.state.place = request.app.state.live.place  # before anything is read: what happens from now on is told from here on
    writes = request.method in WRITES
    caller.require(Role.OPERATE if writes else Role.VIEW, "This")
    if request.url.path.startswith("/api/"):  # a page passes over what it does not know, and shows what it goes by
        api_query.check(request)
    content = f"{request.method} {request.url.path}?{request.url.query}\n".encode() + request.scope.get(BODY, b"")
    connection = await _connection(server)
    bound = asyncio.get_running_loop().call_later(CALL_SECONDS, cut, connection)
    try:
        yield Call(
            connection, caller, idempotency_key if writes else None, hashlib.sha256(content).hexdigest(), server.shell, server.catalogue
        )
    finally:
        bound.cancel()
        # In a thread: it rolls back what is open, over the network.
        await to_thread.run_sync(connection.close, limiter=server.closing)


#: Closed when the endpoint returns, before the answer is on its way: a slow reader holds no connection.
Calling = Annotated[Call, Depends(_call, scope="function")]


def _digits(value: Any) -> Any:
    if isinstance(value, str) and not (value.isascii() and value.isdigit()):
        raise ValueError("must be a whole number")
    return value


#: Of a number in an address: written in digits alone. pydantic reads `1_0` as ten, and `1.0` and ` 1` as one.
Digits = BeforeValidator(_digits)
Limit = Annotated[int, Digits, Query(ge=1, le=LONGEST_PAGE, description="How many at the most.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the page before; opaque.")]
