"""The process's own engine for everything but a session: adding items from any process that imports tasks."""

from __future__ import annotations

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
    return _engine(settings.load().require_database(), os.getpid())
