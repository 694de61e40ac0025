"""Emit from Python: a fact in the caller's own transaction. Light, since a web process imports it: no Celery."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from ordering import facts
from ordering.errors import Invalid
from workers.values import to_json

if TYPE_CHECKING:
    from sqlalchemy.orm import Session, scoped_session

ASYNCHRONOUS = "is an asynchronous one; write `await session.run_sync(emit, type, data)` (of a scoped one: `session().run_sync`)."


def emit(session: Session | scoped_session[Any] | Connection, type: str, data: Any = None, *, key: str | None = None) -> int:
    """Store a fact in the transaction of `session` and nothing else: it neither flushes nor commits. The fact's id.

    `data` may hold datetime, date, time, UUID, Decimal and bytes, which every task that hears it gets back typed; left out it is {}.
    The same `key` of the same type gives the same fact and no second effect. With asyncio: `await session.run_sync(emit, type, data)`.
    Raises Invalid naming the argument; FactKeyConflict if the key was used for other data.
    """
    try:
        stored = {} if data is None else to_json("data", data)
    except TypeError as error:
        raise Invalid("data", f"{str(error).removeprefix('The data ')}.") from None
    return facts.emit(_connection(session), type, stored, key=key)


def _connection(session: Session | scoped_session[Any] | Connection) -> Connection:
    if isinstance(session, Connection):
        return session
    if hasattr(session, "run_sync"):
        raise Invalid("session", ASYNCHRONOUS)
    connection = getattr(session, "connection", None)
    made: object = connection() if callable(connection) else None
    if isinstance(made, Coroutine):  # of an async_scoped_session
        made.close()
        raise Invalid("session", ASYNCHRONOUS)
    if not isinstance(made, Connection):
        raise Invalid("session", "is no SQLAlchemy Session or Connection; give the one whose transaction the fact belongs to.")
    return made
