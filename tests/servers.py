"""The servers that the suite runs against, and a database of its own for each test."""

import os
import secrets
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import amqp
import psycopg
import pytest
import redis
from kombu import Connection as BrokerConnection
from psycopg import sql
from sqlalchemy import Engine, make_url
from sqlalchemy.pool import QueuePool

from app.embedded import Postgres, Valkey, running

# A test's database lives for a second and is never recovered.
CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum_naptime": "5s"}


@contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """URL of the server of `RELEVO_TEST_DATABASE_URL`, else of an embedded one that lives in `folder` for this block."""
    given = os.environ.get("RELEVO_TEST_DATABASE_URL")
    if given:
        yield given
        return
    with running(Postgres(folder / "postgres", CARELESS), folder / "postgres.log") as url:
        yield url
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def database(server_url: str, template: str | None = None, encoding: str | None = None) -> Iterator[str]:
    """URL of a new database, empty or a copy of the database `template`; dropped afterwards whoever is connected.

    encoding: another one than the server's databases have.
    """
    name = f"relevo_test_{uuid.uuid4().hex[:12]}"
    create = sql.SQL("create database {}").format(sql.Identifier(name))
    with psycopg.connect(server_url, autocommit=True) as admin:
        if template:
            create += sql.SQL(" template {}").format(sql.Identifier(template))
            if admin.info.server_version >= 150000:  # as before; what came with 15 takes 0.3 s of processor, this 0.1
                create += sql.SQL(" strategy file_copy")
        if encoding:
            create += sql.SQL(" encoding {} locale 'C' locale_provider libc template template0").format(sql.Literal(encoding))
        admin.execute(create)
    try:
        yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(server_url, autocommit=True) as admin:
            _drop(admin, sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _drop(admin: psycopg.Connection[Any], drop: sql.Composed) -> None:
    for tries_left in reversed(range(12)):
        try:
            admin.execute(drop)
            return
        except psycopg.errors.ObjectInUse:  # whoever was connected had 5 s to end
            if not tries_left:
                raise


def close(engine: Engine) -> None:
    """Close the connections of an engine once no thread has one any more: one that comes back later is closed by nobody.

    It would be found at the end of some other test, which fails.
    """
    pool, deadline = engine.pool, time.monotonic() + 30
    while isinstance(pool, QueuePool) and pool.checkedout() and time.monotonic() < deadline:
        time.sleep(0.01)
    engine.dispose()


@contextmanager
def valkey(folder: Path) -> Iterator[str]:
    """URL of an embedded Valkey that lives in `folder` for this block."""
    with running(Valkey(folder / "valkey"), folder / "valkey.log") as url:
        yield url


def listening(port: int = 0) -> socket.socket:
    """A socket of this machine for an HTTP server, as `app/listen.py` makes it."""
    made = socket.create_server(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def flush(url: str) -> None:
    """Empty every database of a Valkey."""
    client = redis.Redis.from_url(url, socket_timeout=30)
    try:
        client.flushall()
    finally:
        client.close()


def rabbit() -> str:
    """URL of the RabbitMQ of `RELEVO_TEST_RABBIT_URL`; skips the test where there is none."""
    url = os.environ.get("RELEVO_TEST_RABBIT_URL")
    if not url:
        pytest.skip("RELEVO_TEST_RABBIT_URL is not set: no RabbitMQ to test against")
    return url


def delete_queues(url: str, *names: str) -> None:
    """Delete queues of a RabbitMQ with whatever is in them; a missing one is fine."""
    with BrokerConnection(url, connect_timeout=30) as connection:
        for name in names:
            try:
                connection.channel().queue_delete(name)
            except amqp.NotFound:
                continue


def fresh_name(prefix: str) -> str:
    """A name that no other test, worker or run uses."""
    return f"{prefix}-{secrets.token_hex(6)}"
