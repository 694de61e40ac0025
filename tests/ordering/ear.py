"""What feeders are told, exactly: notifications come in the order of their commits, so one of our own marks the end."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import Engine

from ordering import plans

DEADLINE = 60.0  # seconds


@contextmanager
def listening(engine: Engine) -> Iterator[psycopg.Connection[Any]]:
    """A connection that listens where feeders do."""
    with psycopg.connect(_url(engine), autocommit=True) as connection:
        connection.execute("listen " + plans.WAKE_CHANNEL)
        yield connection


def notified(engine: Engine, ear: psycopg.Connection[Any]) -> list[str]:
    """What was told since the last call by all that has committed until now."""
    mark = uuid.uuid4().hex
    with psycopg.connect(_url(engine), autocommit=True) as other:
        other.execute("select pg_notify(%s, %s)", [plans.WAKE_CHANNEL, mark])
    told: list[str] = []
    for each in ear.notifies(timeout=DEADLINE):
        if each.payload == mark:
            return told
        told.append(each.payload)
    raise AssertionError(f"the mark was not heard within {DEADLINE:g} s, only {told}")


def _url(engine: Engine) -> str:
    return engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
