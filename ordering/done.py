"""What one transaction of a person has done, as the trail has it: all events of one actor that bear the transaction's time."""

from __future__ import annotations

from sqlalchemy import Connection, text

RECENT = 50_000  # events among which a transaction's own are looked for

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
    select e.id from relevo.event last
    join relevo.event e on e.at = last.at and e.actor = last.actor and e.id <= last.id and e.id > last.id - {RECENT}
    where last.id = :id and last.actor = :actor and last.at > now() - cast(:within as interval) order by e.id desc limit :limit
""")


def together(tx: Connection, event_id: int, *, actor: str, within: str, limit: int) -> list[int]:
    """Up to `limit` ids of the events of the transaction whose last event this is, the latest first.

    Empty if there is none, if it was not `actor`, or if it was not done `within` this time (an interval).
    """
    given = {"id": event_id, "actor": actor, "within": within, "limit": limit}
    return list(tx.execute(TOGETHER, given).scalars())
