"""One connection that listens on a channel of Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection, sql
from sqlalchemy import Engine


@contextmanager
def listening(engine: Engine, channel: str) -> Iterator[Connection[Any]]:
    """The psycopg connection, in autocommit, that listens on `channel`; it is closed afterwards, not pooled."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        raw: Any = connection.connection.driver_connection
        try:
            raw.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
            yield raw
        finally:
            connection.invalidate()
