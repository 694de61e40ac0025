"""The engine, transactions that retry what Postgres asks to be retried, and migrations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.pool import NullPool, Pool, QueuePool

from ordering.errors import DatabaseUnreachable, Invalid, UnknownSchema

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
RETRIED = {"40001", "40P01"}  # serialization_failure, deadlock_detected
TRIES = 5
# Server side: a backend whose client host is gone ends within 3 s, also in the middle of a query (rule 8).
SESSION_SETTINGS = {
    "client_connection_check_interval": "1000",
    "tcp_keepalives_idle": "1",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "2",
    "tcp_user_timeout": "3000",
    "statement_timeout": "30000",
    "lock_timeout": "15000",
    "idle_in_transaction_session_timeout": "60000",
    "idle_session_timeout": "0",  # a session is idle while its body runs, and the platform while nothing is to be done
    # What a server, a database or a role may say otherwise, and the statements and the driver take for given.
    "default_transaction_isolation": r"read\ committed",
    "datestyle": "ISO,MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "jit": "off",  # to compile the statement that counts what waits takes seconds of processor, and to run it some milliseconds
}
# What libpq finds in these variables it says behind all that a connection asks for.
FROM_ENVIRONMENT = {"PGTZ": "timezone", "PGDATESTYLE": "datestyle"}
# Client side: the same bounds, so that a dead server is noticed and no call hangs.
CONNECT = {
    "connect_timeout": 3,
    "client_encoding": "utf8",  # whatever PGCLIENTENCODING or the database says
    "keepalives": 1,
    "keepalives_idle": 1,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 3000,
}


def engine(url: str, *, name: str = "relevo", pooled: bool = True, settings: dict[str, str] | None = None) -> Engine:
    """An engine for `url` (any `postgresql://` form) whose every call is bounded in time; `name` is its application_name.

    `settings` are session settings on top of the defaults. Raises Invalid if the URL is not one of Postgres.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise Invalid("RELEVO_DATABASE_URL", "is not a URL; write postgresql://user:password@host:port/database.") from None
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise Invalid("RELEVO_DATABASE_URL", f"names {parsed.get_backend_name()!r}; only postgresql:// is supported.")
    options = " ".join(f"-c {key}={value}" for key, value in {**SESSION_SETTINGS, **(settings or {})}.items())
    pool: type[Pool] = QueuePool if pooled else NullPool
    made = create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        poolclass=pool,
        connect_args={**CONNECT, "options": options, "application_name": name},
        **({"pool_pre_ping": True, "pool_timeout": 5} if pooled else {}),
    )
    if not FROM_ENVIRONMENT.keys().isdisjoint(os.environ):
        event.listen(made, "connect", _say_again)
    return made


def _say_again(connection: psycopg.Connection[Any], _: object) -> None:
    connection.autocommit = True
    for name in FROM_ENVIRONMENT.values():
        connection.execute(f"set {name} to {SESSION_SETTINGS[name]}".encode())
    connection.autocommit = False


def sqlstate(error: BaseException) -> str:
    """The five-character SQLSTATE of a database error, or an empty string."""
    orig = getattr(error, "orig", None)
    return getattr(orig, "sqlstate", None) or getattr(orig, "pgcode", None) or ""  # psycopg2's name for it: emit takes any connection


def said(error: BaseException) -> str:
    """The first line of what the server or the driver said with a database error; the name of its class if that is nothing."""
    cause = getattr(error, "orig", None) or error
    return (str(cause).strip() or type(cause).__name__).splitlines()[0]


def is_disconnect(error: BaseException) -> bool:
    """Whether the connection is gone or the server is starting, stopping or out of reach (not a fault of the statement)."""
    if not isinstance(error, DBAPIError):
        return False
    state = sqlstate(error)
    gone = error.connection_invalidated or state[:2] in ("08", "57") or state == "53300"
    return (gone and state != "57014") or (isinstance(error, (OperationalError, InterfaceError)) and not state)


@contextmanager
def reachable() -> Iterator[None]:
    """Turn a lost or refused connection into DatabaseUnreachable, one sentence without a traceback."""
    try:
        yield
    except DBAPIError as error:
        if is_disconnect(error) or sqlstate(error)[:2] in ("28", "3D"):
            first = said(error)
            if "unsupported startup parameter" in first:  # only poolers say so
                first = "it is behind a pooler that takes no session settings; give a direct connection, or a session-pooled one"
            raise DatabaseUnreachable(f"Postgres is unreachable: {first}") from None
        raise


def is_locked(error: DBAPIError) -> bool:
    """Whether a lock was not to be had within the connection's lock_timeout."""
    return sqlstate(error) == "55P03"


# Classes of errors that the values or the statement are to blame for; anything else (a lock, a full disk, a replica) may pass.
BLAMED = ("22", "23", "42", "54")


def may_pass(error: BaseException) -> bool:
    """Whether the same transaction may succeed later: the fault lies with the server's state and not with what was sent."""
    return isinstance(error, DBAPIError) and (is_disconnect(error) or sqlstate(error)[:2] not in BLAMED)


def transact(where: Engine | Connection, verb: Callable[[Connection], T]) -> T:
    """Run `verb` in a transaction of its own and commit; again, up to 5 times, when Postgres reports a deadlock.

    `where`: an engine, or one of its connections that has no transaction open.
    """
    for attempt in range(1, TRIES + 1):
        try:
            if isinstance(where, Engine):
                with where.begin() as tx:
                    return verb(tx)
            with where.begin():
                return verb(where)
        except DBAPIError as error:
            if sqlstate(error) not in RETRIED or attempt == TRIES:
                raise
            time.sleep(0.01 * 2**attempt)
    raise AssertionError("unreachable")


def migrate(url: str) -> None:
    """Bring the schema `relevo` to the newest version. Any number of callers at once; the others wait for the first.

    Raises DatabaseUnreachable if Postgres does not answer, Invalid if the database cannot hold every text, UnknownSchema if a newer
    release was here.
    """
    # Costly, and no service needs it: 0.15 s of processor for each that starts.
    from alembic import command
    from alembic.config import Config
    from alembic.script.revision import ResolutionError
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    owner = engine(url, name="relevo migrate", pooled=False, settings={"statement_timeout": "0", "lock_timeout": "0"})
    with reachable(), owner.begin() as tx:
        # One migrator at a time; 0x72656c76 is 'relv'.
        tx.execute(text("select pg_advisory_xact_lock(x'72656c76'::integer, 0)"))
        encoding = tx.execute(text("show server_encoding")).scalar_one()
        if encoding != "UTF8":
            raise Invalid("RELEVO_DATABASE_URL", f"names a database whose encoding is {encoding}; create one with encoding 'UTF8'.")
        tx.execute(text("create schema if not exists relevo"))
        config.attributes["connection"] = tx
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            if isinstance(error.__cause__, ResolutionError):
                raise UnknownSchema from None
            raise
