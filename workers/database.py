"""The process's own engine for everything but a session: adding items from any process that imports tasks."""

from __future__ import annotations

import json
import os
from functools import cache

from sqlalchemy import Engine

from ordering import db
from workers import forks, settings


@cache
def _engine(url: str, pid: int) -> Engine:
    return forks.guard(db.engine(url, name="relevo"))


def engine() -> Engine:
    """The engine of this process, made on first use and again after a fork. Raises SettingsError without a database."""
    return _engine(url(), os.getpid())


def url() -> str:
    """RELEVO_DATABASE_URL, or the database of the platform that `relevo up` runs in RELEVO_HOME. Raises SettingsError."""
    chosen = settings.load()
    if chosen.database_url is None:
        try:
            embedded = json.loads((chosen.home / "platform.json").read_text(encoding="utf-8"))["database_url"]
        except (OSError, ValueError, KeyError):
            embedded = None
        if embedded:
            return str(embedded)
    return chosen.require_database()
