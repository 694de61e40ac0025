"""What waits for a person: every decision that is open in any plan, what holds a plan first, then the longest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from ordering.dead import DEAD
from ordering.lines import LINE, ItemLine, line

COUNTED = 1_000  # items behind a decision, or dead letters of a stream, that are counted: what is more than this is "more than"
LOOKED_AT = 200  # unresolved items of one plan


@dataclass(frozen=True)
class Need:
    """An open decision of a serial plan.

    `holds`: how many items wait behind it while it keeps the head, counted up to COUNTED + 1; None where it holds nothing.
    `goes_on`: the plan's run is open all the same; else no run can be started.
    """

    item: ItemLine
    called: str
    holds: int | None
    goes_on: bool


@dataclass(frozen=True)
class Letters:
    """The dead letters of a stream, counted up to COUNTED + 1, since the first that is there."""

    plan: str
    called: str
    count: int
    since: datetime


@dataclass(frozen=True)
class Needs:
    """`more`: there are open decisions beyond those that are listed."""

    items: Sequence[Need]
    letters: Sequence[Letters]
    more: bool


DECISIONS = text(f"""
    with undecided as (
        select p.id as plan_id, p.name, coalesce(nullif(p.title, ''), p.name) as called, x.id as item_id, x.at_head, x.unresolved_at
        from relevo.plan p cross join lateral (
            select i.id, i.at_head, i.unresolved_at from relevo.item i
            where i.plan_id = p.id and i.state in ('failed', 'interrupted') order by i.position limit {LOOKED_AT}) x
        where p.concurrency = 1 order by x.at_head desc, x.unresolved_at, x.id limit :limit
    )
    select u.called, u.at_head as holding, exists (select from relevo.run r where r.plan_id = u.plan_id and r.ended_at is null) as goes_on,
        case when u.at_head then (select count(*) from (
            select 1 from relevo.item w where w.plan_id = u.plan_id and w.state = 'waiting' order by w.position, w.id
            limit {COUNTED + 1}) x) end as behind, u.unresolved_at as open_since, shown.*
    from undecided u cross join lateral (select {LINE} where i.id = u.item_id) shown
    order by u.at_head desc, u.unresolved_at, u.item_id
""")
LETTERS = text(f"""
    select p.name as plan, coalesce(nullif(p.title, ''), p.name) as called, x.count, x.since
    from relevo.plan p cross join lateral (
        select count(*) as count, min(unresolved_at) as since from (
            select i.unresolved_at from relevo.item i where i.plan_id = p.id and {DEAD} order by i.position limit {COUNTED + 1}) dead
    ) x
    where p.concurrency > 1 and x.count > 0 order by x.since, p.name limit :limit
""")


def needs(tx: Connection, *, limit: int) -> Needs:
    """Up to `limit` open decisions of serial plans, and as many streams with dead letters."""
    rows: Sequence[Any] = tx.execute(DECISIONS, {"limit": limit + 1}).all()
    found = [Need(line(row), row.called, row.behind if row.holding else None, row.goes_on) for row in rows[:limit]]
    letters = [Letters(**row._mapping) for row in tx.execute(LETTERS, {"limit": limit})]
    return Needs(found, letters, len(rows) > limit)


@dataclass(frozen=True)
class Unresolved:
    """A plan with unresolved items, counted up to COUNTED + 1."""

    plan: str
    called: str
    count: int


UNRESOLVED = text(f"""
    select p.name as plan, coalesce(nullif(p.title, ''), p.name) as called, x.count from relevo.plan p cross join lateral (
        select count(*) as count from (
            select 1 from relevo.item i where i.plan_id = p.id and i.state in ('failed', 'interrupted') order by i.position
            limit {COUNTED + 1}) y) x
    where p.concurrency = 1 and x.count > 0 order by p.name limit :limit
""")


def unresolved(tx: Connection, *, limit: int) -> list[Unresolved]:
    """Up to `limit` serial plans that have unresolved items, by name."""
    return [Unresolved(**row._mapping) for row in tx.execute(UNRESOLVED, {"limit": limit})]
