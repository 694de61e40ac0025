"""Tick: add the item of each schedule that is due, exactly one however many feeders look.

The plan's lock comes first; then `next_at` moves on where it still stands as it was read; then the item is added, its key
naming schedule and instant. One transaction, so a tick is made and counted, or neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from ordering import add, audit, clock, cron, plans
from ordering.errors import Invalid, KeyConflict
from ordering.model import Missed, NewItem

DUE = text("""
    select now(), s.id, s.name, s.plan_id from (values (1)) one left join relevo.schedule s on not s.paused and s.next_at <= now()
    order by s.next_at, s.id
""")


@dataclass(frozen=True)
class DueSchedule:
    """A schedule whose time has come."""

    id: int
    name: str
    plan_id: int


@dataclass(frozen=True)
class Look:
    """The schedules that were due at `now` by the database's clock, the longest due first."""

    now: datetime
    due: Sequence[DueSchedule]


def look(tx: Connection) -> Look:
    """Whose next tick has come."""
    rows = tx.execute(DUE).all()
    return Look(rows[0].now, [DueSchedule(row.id, row.name, row.plan_id) for row in rows if row.id is not None])


TO_COME = text("select id, name, cron, timezone, next_at from relevo.schedule where not paused and next_at > now() order by id")
COUNT_ANEW = text("""
    update relevo.schedule set next_at = :next_at
    where id = :id and next_at = :seen and not paused and cron = :cron and timezone = :timezone
""")


def count_anew(tx: Connection) -> list[str]:
    """Let each schedule that is not due tick next at the first tick after now; the names of those that had another one.

    They had where the database's clock was set back, and where a time zone has got other rules since. A tick that was made is not
    made again: its item's key is known.
    """
    now = clock.now(tx)
    changed: list[str] = []
    for each in tx.execute(TO_COME).all():
        with suppress(Invalid):  # the time zone is known no more: told when it is due
            first = cron.first(each.cron, each.timezone, now)
            if first != each.next_at:
                values = {"id": each.id, "seen": each.next_at, "next_at": first, "cron": each.cron, "timezone": each.timezone}
                changed += [each.name] * tx.execute(COUNT_ANEW, values).rowcount
    return changed


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
