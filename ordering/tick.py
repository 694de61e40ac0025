"""Tick: add the item of each schedule that is due, exactly one however many feeders look.

The plan's lock comes first; then `next_at` moves on where it still stands as it was read; then the item is added, its key
naming schedule and instant. One transaction, so a tick is made and counted, or neither.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import Connection, text

from ordering import add, audit, clock, cron, plans
from ordering.errors import KeyConflict
from ordering.model import Missed, NewItem

DUE = text("select id, name, plan_id from relevo.schedule where not paused and next_at <= now() order by next_at, id")


@dataclass(frozen=True)
class DueSchedule:
    """A schedule whose time has come."""

    id: int
    name: str
    plan_id: int


def due(tx: Connection) -> list[DueSchedule]:
    """The schedules whose next tick has come, by the database's clock, the longest due first."""
    return [DueSchedule(**row._mapping) for row in tx.execute(DUE)]


SEEN = text("""
    select name, plan_id, cron, timezone, missed, task, args, kwargs, title, kind, next_at from relevo.schedule
    where id = :id and not paused and next_at <= now()
""")
# What was read still stands: no other feeder made this tick, and nobody changed, paused or removed the schedule meanwhile.
MOVE_ON = text("""
    update relevo.schedule set next_at = :next_at, last_at = coalesce(:last_at, last_at)
    where id = :id and next_at = :seen and not paused and plan_id = :plan_id and cron = :cron and timezone = :timezone
        and missed = :missed
    returning task, args, kwargs, title, kind
""")


def tick(tx: Connection, schedule_id: int) -> list[int]:
    """Make the schedule's due ticks, as its `missed` says where there are several; the ids of the items added.

    Raises Invalid if its expression or time zone is valid no more: it stays due then.
    """
    seen = tx.execute(SEEN, {"id": schedule_id}).one_or_none()
    if seen is None:
        return []
    found = cron.due(seen.cron, seen.timezone, Missed(seen.missed), seen.next_at, clock.now(tx))
    plan = plans.lock(tx, seen.plan_id)
    guard = {"seen": seen.next_at, "plan_id": seen.plan_id, "cron": seen.cron, "timezone": seen.timezone, "missed": seen.missed}
    last_at = found.made[-1] if found.made else None
    moved = tx.execute(MOVE_ON, {"id": schedule_id, "next_at": found.next, "last_at": last_at, **guard}).one_or_none()
    if moved is None:
        return []
    actor = f"schedule {seen.name}"
    if found.skipped:
        before = found.made[0] if found.made else found.next
        left_out = {"schedule": seen.name, "from": seen.next_at, "before": before}
        audit.record(tx, actor=actor, action="miss", plan_id=plan.id, after=left_out, reason=f"missed: {seen.missed}")
    added: list[int] = []
    for at in found.made:
        key = f"{actor} {at:%Y-%m-%dT%H:%M:%SZ}"
        new = NewItem(moved.task, moved.args, moved.kwargs, title=moved.title or seen.name, kind=moved.kind, key=key)
        # Made before with another content: the database's clock was set back and the schedule made anew.
        with suppress(KeyConflict):
            added += [each.id for each in [add.add(tx, plan.name, new, actor=actor)] if each.new]
    return added
