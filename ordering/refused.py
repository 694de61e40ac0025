"""Read model of refused messages: what came through the broker, could not be read or named an unknown task, and ran nothing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text


@dataclass(frozen=True)
class RefusedMessage:
    """One refused message: who refused it and why, its size in bytes, and its beginning."""

    id: int
    at: datetime
    actor: str
    reason: str
    size: int | None
    preview: str
    task: str | None
    dispatch: str | None


REFUSED = text("""
    select id, at, actor, reason, cast(after ->> 'size' as bigint) as size, coalesce(after ->> 'preview', '') as preview,
        after ->> 'task' as task, after ->> 'dispatch' as dispatch
    from relevo.event where action = 'refuse' order by id desc limit :limit
""")


def refused(tx: Connection, *, limit: int) -> list[RefusedMessage]:
    """The latest refused messages, the last first."""
    return [RefusedMessage(**row._mapping) for row in tx.execute(REFUSED, {"limit": limit})]
