"""Run-all: add every entry of a catalogue's plan that is not there already, in the preset order, and start the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.catalogue import CataloguePlan, Entry
from app.declare import declare, plan_of
from app.known_tasks import require
from ordering import add, items, plan_edit, plans
from ordering.errors import Invalid
from ordering.model import Plan

ONCE = "succeeded, and runs once"


@dataclass(frozen=True)
class Left:
    """An entry that was not added, and why: the state of its item, how it ended in this run, or ONCE."""

    key: str
    why: str


@dataclass(frozen=True)
class AllAdded:
    """What run-all did: ids of the items it added, in their order, what it left out, and the run."""

    plan: Plan
    added: Sequence[int]
    left: Sequence[Left]
    run: plans.Run


def run_all(tx: Connection, plan: CataloguePlan, keys: Sequence[str] = (), *, actor: str) -> AllAdded:
    """Add the entries of `plan` (or those of `keys`, in that order) that are not in the line or unresolved, and start it.

    The plan is created if it is missing and takes the settings and schedules that the catalogue states. While a run is open, what
    it has done already is left out, so that a second call adds nothing twice, however far the first one's items have come by then.
    Entries with `once` that have succeeded are always left out. The plan's row lock lets one call in after the other.

    Raises Invalid for an unknown key or a setting that the plan cannot take, UnknownTask, PlanBlocked while a serial
    plan has unresolved items; nothing is added then.
    """
    entries = [_entry(plan, key) for key in dict.fromkeys(keys)] if keys else list(plan.entries)
    require(tx, (work.task for entry in entries for work in (entry.work, entry.repair) if work is not None))
    held = plan_of(tx, plan, actor=actor)
    plans.refuse_if_blocked(tx, held)
    held = plan_edit.edit(tx, held, dict(plan.settings), actor=actor)
    declare(tx, plan, actor=actor)
    left_out = not_again(tx, held, entries)
    wanted = [entry for entry in entries if entry.key not in left_out]
    added = add.add_many(tx, held.name, [entry.item() for entry in wanted], actor=actor)
    run = plans.start(tx, held.name, actor=actor)
    left = [Left(entry.key, left_out[entry.key]) for entry in entries if entry.key in left_out]
    return AllAdded(held, [each.id for each in added], left, run)


def not_again(tx: Connection, held: Plan, entries: Sequence[Entry]) -> dict[str, str]:
    """By key, why entries are not added by a run-all now: the state of their item, how they ended in this run, or ONCE."""
    left_out = dict.fromkeys(_succeeded(tx, held, [entry for entry in entries if entry.once]), ONCE)
    if held.serial:  # a stream's run never ends
        left_out |= _done(tx, held, entries)
    return left_out | _unsettled(tx, held, entries)


def _entry(plan: CataloguePlan, key: str) -> Entry:
    entry = plan.entry(key)
    if entry is None:
        known = ", ".join(entry.key for entry in plan.entries) or "none"
        raise Invalid("key", f"plan {plan.name!r} has no entry {key[:80]!r} (it has: {known}).")
    return entry


UNSETTLED = text(f"""
    select i.entry, {items.STATE} as state from relevo.item i left join relevo.dispatch d on d.id = i.dispatch_id
    where i.plan_id = :plan_id and i.entry = any(:keys) and i.settled_at is null
""")


def _unsettled(tx: Connection, plan: Plan, entries: Sequence[Entry]) -> dict[str, str]:
    """By key, the states of the entries' items that are in the line, out or unresolved."""
    rows = tx.execute(UNSETTLED, {"plan_id": plan.id, "keys": [entry.key for entry in entries]})
    return {row.entry: row.state for row in rows}


DONE = text("""
    select distinct on (i.entry) i.entry, i.state from relevo.item i join relevo.run r on r.plan_id = i.plan_id and r.ended_at is null
    where i.plan_id = :plan_id and i.entry = any(:keys) and i.state in ('succeeded', 'skipped', 'resolved')
        and i.settled_at >= r.started_at
    order by i.entry, i.settled_at desc
""")


def _done(tx: Connection, plan: Plan, entries: Sequence[Entry]) -> dict[str, str]:
    """By key, how the entries ended that the open run has done already; what a person cancelled may be asked for again."""
    rows = tx.execute(DONE, {"plan_id": plan.id, "keys": [entry.key for entry in entries]})
    return {row.entry: f"{row.state} in this run" for row in rows}


SUCCEEDED = text("""
    select wanted from unnest(cast(:keys as text[])) as wanted
    where exists (select from relevo.item where plan_id = :plan_id and entry = wanted and state = 'succeeded')
""")


def _succeeded(tx: Connection, plan: Plan, entries: Sequence[Entry]) -> set[str]:
    """The keys among the entries of which an item has succeeded already."""
    return set(tx.execute(SUCCEEDED, {"plan_id": plan.id, "keys": [entry.key for entry in entries]}).scalars())
