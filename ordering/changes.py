"""What somebody who looks at the board must hear of: new events, and signs that a machine has changed a plan. Nothing is counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from ordering.horizon import Horizon

CHANNEL = "relevo_event"  # where the trail tells of new events; the payload is an id
RECENT = 200

LATEST = text("select id from relevo.event order by id desc limit :limit")


def begun(tx: Connection) -> Horizon:
    """The horizon of somebody who takes what is there for known; the latest RECENT events are looked at for one that comes late."""
    ids = list(tx.execute(LATEST, {"limit": RECENT}).scalars())
    return Horizon(ids, low=ids[-1] - 1 if len(ids) == RECENT else 0)


# One statement, so that the ids and the oldest open transaction are of one snapshot.
NEW = text("""
    select cast(cast(pg_snapshot_xmin(pg_current_snapshot()) as text) as bigint) as oldest, array(
        select id from relevo.event where id > :low and id <> all(cast(:told as bigint[])) order by id limit :limit) as ids
""")


@dataclass(frozen=True)
class New:
    """Ids in their order, and the number of the oldest transaction that was open when they were read."""

    ids: Sequence[int]
    oldest: int


def new(tx: Connection, low: int, told: Collection[int], limit: int) -> New:
    """Up to `limit` events with ids above `low` that are not in `told`."""
    row = tx.execute(NEW, {"low": low, "told": list(told), "limit": limit}).one()
    return New(list(row.ids), row.oldest)


# The snapshot's own upper end is lower than the numbers of transactions that are open and young.
NEXT = text("select cast(cast(pg_current_xact_id() as text) as bigint)")


def next_xid(tx: Connection) -> int:
    """A transaction number above that of every transaction that has one. It is used up."""
    found: int = tx.execute(NEXT).scalar_one()
    return found


# Each part is one look at an index (a stream's dispatches: a few hundred rows). What people do is in the trail.
SEALS = text("""
    select p.name, cast(row(
        (select row(max(created_at), max(claimed_at), count(*)) from (
            select created_at, claimed_at from relevo.dispatch where plan_id = p.id and ended_at is null limit 1000) out),
        (select ended_at from relevo.dispatch where plan_id = p.id and ended_at is not null order by ended_at desc limit 1),
        (select row(settled_at, id) from relevo.item where plan_id = p.id and settled_at is not null order by settled_at desc limit 1),
        (select row(id, not_before) from relevo.item where plan_id = p.id and state = 'waiting' order by position, id limit 1),
        (select id from relevo.item where plan_id = p.id and state = 'waiting' order by position desc, id desc limit 1),
        (select row(id, not_before) from relevo.item where plan_id = p.id and state = 'postponed' order by not_before limit 1),
        (select max(o.updated_at) from (
            select id from relevo.dispatch where plan_id = p.id and ended_at is null and claimed_at is not null limit 32) d
            join relevo.item i on i.dispatch_id = d.id join relevo.output o on o.item_id = i.id and o.attempt = i.attempts + 1)
    ) as text) as seal from relevo.plan p
""")
WORKERS = text("""
    select cast(row((select max(id) from relevo.session), (
        select string_agg(concat_ws(' ', id, lost_at), ',' order by id) from relevo.session where closed_at is null)) as text)
""")


def seals(tx: Connection) -> Mapping[str, str]:
    """By plan, a text that differs when something of it was handed out, claimed, ended, settled, added last, woken or printed."""
    return {row.name: row.seal for row in tx.execute(SEALS)}


def workers(tx: Connection) -> str:
    """A text that differs when a pool process came, was lost or went."""
    found: str = tx.execute(WORKERS).scalar_one()
    return found
