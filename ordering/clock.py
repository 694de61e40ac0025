"""The database's clock, which is the only one."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, text

NOW = text("select now()")


def now(tx: Connection) -> datetime:
    """When this transaction began, with its zone."""
    found: datetime = tx.execute(NOW).scalar_one()
    return found
