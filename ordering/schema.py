"""Which version the schema of a database has, beside the one that this release works with. Without Alembic: it takes 0.15 s to load."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from ordering import db
from ordering.errors import NotMigrated, UnknownSchema

#: The versions that this release knows, the oldest first: every migration's file begins with its own.
VERSIONS = sorted(file.name.partition("_")[0] for file in (Path(__file__).parent / "migrations" / "versions").glob("[0-9]*_*.py"))
VERSION = text("select version_num from relevo.alembic_version")


def check(tx: Connection) -> None:
    """Raise NotMigrated where the schema is missing or older than this release's, UnknownSchema where it is a newer one's."""
    try:
        found = tx.execute(VERSION).scalar_one_or_none()
    except DBAPIError as error:
        if db.sqlstate(error) in ("42P01", "3F000"):
            raise NotMigrated from None
        raise
    if found is None or found in VERSIONS[:-1]:
        raise NotMigrated
    if found != VERSIONS[-1]:
        raise UnknownSchema


def check_at(engine: Engine) -> None:
    """`check` on a connection of its own. Raises DatabaseUnreachable, too."""
    with db.reachable(), engine.connect() as tx:
        check(tx)
