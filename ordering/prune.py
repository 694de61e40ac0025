"""Prune: let go of what is older than its plan keeps it, in small steps. Nothing unresolved goes, nor what belongs to it.

A sweep walks one kind of row of one plan from the oldest on, by an index, a window at a time, and deletes what nothing needs any
more. Any number of callers at once: what another holds is left for the next sweep. Deleting takes no plan's lock.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, text

WINDOW = 1000  # rows looked at in one transaction: 50 to 100 ms where all of them go


@dataclass(frozen=True)
class Sweep:
    """One kind of row of one plan (None: of no plan), after the place where the last step ended."""

    kind: str
    plan_id: int | None
    after: tuple[Any, Any] | None = None


@dataclass(frozen=True)
class Step:
    """How many rows went, and what is left to look at, if anything."""

    gone: int
    rest: Sweep | None


# Facts, sessions, and what is of no plan stay as long as the plan that keeps longest. A session is not gone for a day, nor a dispatch
# for an hour, however short a plan keeps: late copies of messages and processes that come back find them.
LONGEST = "(select now() - greatest(max(keep), interval '1 day') from relevo.plan)"
DUE = text(f"""
    select p.id as plan_id, oldest.kind from relevo.plan p cross join lateral (values
        ('item', (select settled_at from relevo.item where plan_id = p.id and settled_at is not null order by settled_at limit 1)),
        ('dispatch', (select ended_at from relevo.dispatch where plan_id = p.id and ended_at is not null order by ended_at limit 1)),
        ('event', (select at from relevo.event where plan_id = p.id order by id limit 1)),
        ('run', (select ended_at from relevo.run where plan_id = p.id and id < (select max(id) from relevo.run where plan_id = p.id)
            order by id limit 1))
    ) as oldest (kind, at) where oldest.at < now() - p.keep
    union all
    select null, oldest.kind from (values
        ('event', (select at from relevo.event where plan_id is null order by plan_id, id limit 1)),
        ('fact', (select at from relevo.fact order by at limit 1)),
        ('session', (select closed_at from relevo.session where closed_at is not null order by id limit 1))
    ) as oldest (kind, at) where oldest.at < {LONGEST}
""")
KINDS = ("item", "dispatch", "event", "run", "fact", "session")  # what points is gone before what it points to


def due(tx: Connection) -> list[Sweep]:
    """The sweeps that may find something old now, in their order: one query where there is nothing to do."""
    found = [Sweep(row.kind, row.plan_id) for row in tx.execute(DUE)]
    return sorted(found, key=lambda sweep: KINDS.index(sweep.kind))


RESULT = """
    select (select count(*) from gone) as gone, (select count(*) from looked) as looked, at, id from looked
    order by at desc, id desc limit 1
"""
BY_ID = RESULT.replace("at desc, id desc", "id desc")
# Kept besides what is not settled: what an unsettled item repairs or is repaired by, what a process still holds, and of each
# catalogue entry the last item of each outcome, from which run-all knows that it is done.
ITEMS = f"""
    with looked as materialized (
        select id, settled_at as at from relevo.item
        where plan_id = :plan_id and settled_at is not null and (settled_at, id) > (cast(:at as timestamptz), :id)
            and settled_at < (select now() - keep from relevo.plan where id = :plan_id)
        order by settled_at, id limit :limit
    ), picked as materialized (
        select i.id from relevo.item i join looked on looked.id = i.id
        where i.settled_at = looked.at and not i.at_head
            and not exists (select from relevo.dispatch d where d.id = i.dispatch_id and d.ended_at is null)
            and not exists (select from relevo.item r where r.repairs = i.id and r.settled_at is null)
            and not exists (select from relevo.item r where r.id = i.repairs and r.settled_at is null)
            and (i.entry is null or exists (
                select from relevo.item l where l.plan_id = i.plan_id and l.entry = i.entry and l.state = i.state
                    and (l.settled_at, l.id) > (i.settled_at, i.id)))
        for update of i skip locked
    ), gone as (delete from relevo.item using picked where item.id = picked.id returning 1)
    {RESULT}"""
DISPATCHES = f"""
    with looked as materialized (
        select id, ended_at as at from relevo.dispatch
        where plan_id = :plan_id and ended_at is not null and (ended_at, id) > (cast(:at as timestamptz), cast(:id as uuid))
            and ended_at < (select now() - greatest(keep, interval '1 hour') from relevo.plan where id = :plan_id)
        order by ended_at, id limit :limit
    ), picked as materialized (
        select d.id from relevo.dispatch d join looked on looked.id = d.id
        where not exists (select from relevo.item i where i.dispatch_id = d.id) for update of d skip locked
    ), gone as (delete from relevo.dispatch using picked where dispatch.id = picked.id returning 1)
    {RESULT}"""
# The trail of an item lives as long as the item.
EVENTS = """
    with window_of as materialized (
        select id, at, item_id from relevo.event where {of} and id > :id order by plan_id, id limit :limit
    ), looked as (select * from window_of where at < {before}), picked as materialized (
        select e.id from relevo.event e join looked on looked.id = e.id
        where not exists (select from relevo.item i where i.id = looked.item_id) for update of e skip locked
    ), gone as (delete from relevo.event using picked where event.id = picked.id returning 1)
    {result}"""
RUNS = f"""
    with looked as materialized (
        select id, null as at from relevo.run where plan_id = :plan_id and id > :id
            and id < (select max(id) from relevo.run where plan_id = :plan_id)
        order by id limit :limit
    ), gone as (
        delete from relevo.run using looked where run.id = looked.id
            and run.ended_at < (select now() - keep from relevo.plan where id = :plan_id) returning 1)
    {BY_ID}"""
FACTS = f"""
    with looked as materialized (
        select id, at from relevo.fact where (at, id) > (cast(:at as timestamptz), :id) and at < {LONGEST} order by at, id limit :limit
    ), picked as materialized (
        select f.id from relevo.fact f join looked on looked.id = f.id
        where not exists (select from relevo.item i where i.fact_id = f.id) for update of f skip locked
    ), gone as (delete from relevo.fact using picked where fact.id = picked.id returning 1)
    {RESULT}"""
SESSIONS = f"""
    with looked as materialized (
        select id, null as at from relevo.session where id > :id order by id limit :limit
    ), picked as materialized (
        select s.id from relevo.session s join looked on looked.id = s.id
        where s.closed_at < {LONGEST} and not exists (select from relevo.dispatch d where d.session_id = s.id)
            and not exists (select from relevo.attempt a where a.session_id = s.id) for update of s skip locked
    ), gone as (delete from relevo.session using picked where session.id = picked.id returning 1)
    {BY_ID}"""
OF_PLAN = EVENTS.format(of="plan_id = :plan_id", before="(select now() - keep from relevo.plan where id = :plan_id)", result=BY_ID)
OF_NONE = EVENTS.format(of="plan_id is null", before=LONGEST, result=BY_ID)
FIRST: tuple[Any, Any] = ("-infinity", 0)
FIRST_DISPATCH: tuple[Any, Any] = ("-infinity", "00000000-0000-0000-0000-000000000000")
STATEMENTS = {
    ("item", True): text(ITEMS),
    ("dispatch", True): text(DISPATCHES),
    ("event", True): text(OF_PLAN),
    ("event", False): text(OF_NONE),
    ("run", True): text(RUNS),
    ("fact", False): text(FACTS),
    ("session", False): text(SESSIONS),
}
# Losing the last of it in a crash costs nothing: it is pruned again.
UNHURRIED = text("select set_config('synchronous_commit', 'off', true)")


def step(tx: Connection, sweep: Sweep, limit: int = WINDOW) -> Step:
    """Look at the next `limit` rows of the sweep and delete those that are old and that nothing needs."""
    tx.execute(UNHURRIED)
    at, after = sweep.after or (FIRST_DISPATCH if sweep.kind == "dispatch" else FIRST)
    statement = STATEMENTS[sweep.kind, sweep.plan_id is not None]
    given = {"plan_id": sweep.plan_id, "at": at, "id": after, "limit": limit}
    row = tx.execute(statement, {name: value for name, value in given.items() if f":{name}" in statement.text}).one_or_none()
    if row is None:
        return Step(0, None)
    return Step(row.gone, replace(sweep, after=(row.at, row.id)) if row.looked == limit else None)
