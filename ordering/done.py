"""What one transaction of a person has done, as the trail has it: all events of one actor that bear the transaction's time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from ordering.lines import TEXT_LIMIT
from ordering.model import Json

RECENT = 50_000  # events among which a transaction's own are looked for


@dataclass(frozen=True)
class Event:
    """One line of the trail with what it is about; `title` is the item's, or its task where it has none."""

    id: int
    at: datetime
    actor: str
    action: str
    plan: str | None
    item: int | None
    title: str | None
    before: Json
    after: Json
    reason: str


LATEST = text("""
    select id from (select id, at, actor from relevo.event order by id desc limit 1000) recent
    where at = now() and actor = :actor order by id desc limit 1
""")


def latest(tx: Connection, actor: str) -> int | None:
    """The id of the last event that `actor` has recorded in this transaction, or None if nothing was changed."""
    found: int | None = tx.execute(LATEST, {"actor": actor}).scalar_one_or_none()
    return found


# An event's time is its transaction's, to the microsecond; together with the actor it names the transaction.
TOGETHER = text(f"""
    select e.id, e.at, e.actor, e.action, p.name as plan, e.item_id as item,
        left(coalesce(nullif(i.title, ''), i.task), {TEXT_LIMIT}) as title, e.before, e.after, e.reason
    from relevo.event last join relevo.event e on e.at = last.at and e.actor = last.actor and e.id <= last.id and e.id > last.id - {RECENT}
    left join relevo.plan p on p.id = e.plan_id left join relevo.item i on i.id = e.item_id
    where last.id = :id order by e.id limit :limit
""")


def together(tx: Connection, event_id: int, *, limit: int) -> Sequence[Event]:
    """Up to `limit` events of the transaction whose last event this is, oldest first; empty if there is none."""
    return [Event(**row._mapping) for row in tx.execute(TOGETHER, {"id": event_id, "limit": limit})]
