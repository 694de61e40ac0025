"""Several statements in one round trip: what a hand-off waits for. Each still has a snapshot of its own (rule 1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row
from sqlalchemy import Connection, TextClause
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError

Call = tuple[TextClause, Mapping[str, Any]]


@cache
def _driver_sql(statement: TextClause) -> str:
    return str(statement.compile(dialect=PGDialect_psycopg()))  # type: ignore[no-untyped-call]


def together(tx: Connection, *calls: Call) -> list[list[Any]]:
    """Send the statements, with the BEGIN if there was none, before waiting for any of them; the rows of each.

    They are executed one after the other, so one that waits for a lock lets the next see what its last holder committed.
    libpq calls this a pipeline; a round trip is 0.1-0.2 ms, and a hand-off made twelve. Raises DBAPIError.
    """
    raw: Any = tx.connection.driver_connection
    try:
        with raw.pipeline():
            cursors = [
                raw.cursor(row_factory=namedtuple_row).execute(_driver_sql(statement), parameters) for statement, parameters in calls
            ]
            return [cursor.fetchall() for cursor in cursors]
    except psycopg.Error as error:
        lost = bool(raw.closed)
        if lost:
            tx.invalidate(error)
        raise DBAPIError.instance(
            "; ".join(_driver_sql(statement) for statement, _ in calls), None, error, psycopg.Error, connection_invalidated=lost
        ) from error
