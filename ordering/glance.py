"""Plans at a glance, for pages that are rendered again and again: counts that stop at a bound, the head, the first of each list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, text

from ordering import lines
from ordering.errors import UnknownPlan
from ordering.lines import LINE, ItemLine
from ordering.model import UNRESOLVED, OnFailure, State
from ordering.rate import shown
from ordering.views import RunView, Status, status

# To count a million takes 100 ms; the first ten thousand, which is what a person can still take in, takes one.
COUNTED = 10_000


@dataclass(frozen=True)
class Glance:
    """A plan with its latest run, its head, and how many items it has of each state, counted up to `most`.

    Settled items are those since the latest run began. A count of more than `most` says only that.
    """

    id: int
    name: str
    title: str
    concurrency: int
    on_failure: OnFailure
    autostart: bool
    rate: str | None
    status: Status
    run: RunView | None
    counts: Mapping[State, int]
    most: int
    head: ItemLine | None

    @property
    def serial(self) -> bool:
        """Whether it has a head."""
        return self.concurrency == 1

    @property
    def called(self) -> str:
        """Its title, else its name."""
        return self.title or self.name

    @property
    def unresolved(self) -> int:
        """How many items nobody has decided yet, up to `most` of each state."""
        return sum(self.counts[state] for state in UNRESOLVED)

    @property
    def out(self) -> int:
        """How many are dispatched or running."""
        return self.counts[State.DISPATCHED] + self.counts[State.RUNNING]

    @property
    def settled(self) -> int:
        """How many were settled since the latest run began."""
        return sum(self.counts[state] for state in (State.SUCCEEDED, State.SKIPPED, State.RESOLVED, State.CANCELLED))


# Each count is ordered, so that Postgres walks an index and stops, whatever it believes of the table.
def _count(where: str, order: str) -> str:
    return f"(select count(*) from (select 1 from relevo.item i where i.plan_id = p.id and {where} order by {order} limit :bound) x)"


GLANCE = f"""
    select p.id, p.name, p.title, p.concurrency, p.on_failure, p.autostart, p.rate,
        r.id as run_id, r.on_failure as run_on_failure, r.started_at, r.started_by, r.ended_at, r.ended_as,
        {_count("i.state = 'waiting'", "i.position, i.id")} as waiting,
        {_count("i.state = 'postponed'", "i.not_before")} as postponed,
        (select jsonb_object_agg(state, count) from (
            select state, count(*) from (
                select i.state from relevo.item i where i.plan_id = p.id and i.state in ('failed', 'interrupted')
                order by i.position limit :bound) x group by state) x) as unresolved,
        (select jsonb_object_agg(state, count) from (
            select case when claimed_at is null then 'dispatched' else 'running' end as state, count(*) from (
                select d.claimed_at from relevo.dispatch d join relevo.item i on i.dispatch_id = d.id and i.settled_at is null
                where d.plan_id = p.id and d.ended_at is null and i.state = 'dispatched' limit :bound) x group by 1) x) as out,
        (select jsonb_object_agg(state, count) from (
            select state, count(*) from (
                select i.state from relevo.item i
                where i.plan_id = p.id and i.settled_at is not null and i.settled_at >= coalesce(r.started_at, '-infinity')
                order by i.settled_at desc limit :bound) latest group by state) x) as settled
    from relevo.plan p left join lateral (
        select * from relevo.run where plan_id = p.id order by id desc limit 1) r on true
"""
BY_NAME = text(f"{GLANCE} where p.name = any(:names) order by p.name")
HEADS = text(f"select {LINE} where i.at_head and i.plan_id = any(:plans)")
NAMES = text("""
    select name from relevo.plan where name > :after
        and (cast(:text as text) is null or strpos(lower(name), lower(:text)) > 0 or strpos(lower(title), lower(:text)) > 0)
    order by name limit :limit
""")


def plans(
    tx: Connection, *, limit: int, after: str = "", containing: str | None = None, most: int = COUNTED
) -> tuple[list[Glance], str | None]:
    """Up to `limit` plans by name, behind the name `after`, with this text in name or title; where the next page begins."""
    names = list(tx.execute(NAMES, {"after": after, "text": containing, "limit": limit + 1}).scalars())
    return _glances(tx, names[:limit], most), names[limit - 1] if len(names) > limit else None


def plan(tx: Connection, name: str, *, most: int = COUNTED) -> Glance:
    """The plan of this name. Raises UnknownPlan."""
    found = _glances(tx, [name], most)
    if not found:
        raise UnknownPlan(name)
    return found[0]


def _glances(tx: Connection, names: list[str], most: int) -> list[Glance]:
    rows = tx.execute(BY_NAME, {"names": names, "bound": most + 1}).all()
    heads = {head.plan: head for head in map(lines.line, tx.execute(HEADS, {"plans": [row.id for row in rows]}))}
    return [_glance(row, heads.get(row.name), most) for row in rows]


def _glance(row: Row[Any], head: ItemLine | None, most: int) -> Glance:
    run = None
    if row.run_id is not None:
        run = RunView(row.run_id, OnFailure(row.run_on_failure), row.started_at, row.started_by, row.ended_at, row.ended_as)
    counted = {"waiting": row.waiting, "postponed": row.postponed, **(row.unresolved or {}), **(row.out or {}), **(row.settled or {})}
    return Glance(
        id=row.id,
        name=row.name,
        title=row.title,
        concurrency=row.concurrency,
        on_failure=OnFailure(row.on_failure),
        autostart=row.autostart,
        rate=None if row.rate is None else shown(row.rate),
        status=status(run, head),
        run=run,
        counts={state: counted.get(state, 0) for state in State},
        most=most,
        head=head,
    )


FIRST_WAITING = text(f"""
    select x.* from unnest(cast(:plans as bigint[])) as wanted (plan_id) cross join lateral (
        select {LINE} where i.plan_id = wanted.plan_id and i.state = 'waiting' order by i.position, i.id limit :limit) x
""")
LONGEST_UNRESOLVED = text(f"""
    select x.* from unnest(cast(:plans as bigint[])) as wanted (plan_id) cross join lateral (
        select {LINE} where i.plan_id = wanted.plan_id and i.state in ('failed', 'interrupted')
        order by i.at_head desc, i.position, i.id limit :limit) x
""")


def first_waiting(tx: Connection, plan_ids: Sequence[int], *, limit: int) -> dict[str, list[ItemLine]]:
    """The first waiting items of each of these plans, by the plan's name."""
    return _by_plan(tx.execute(FIRST_WAITING, {"plans": list(plan_ids), "limit": limit}))


def first_unresolved(tx: Connection, plan_ids: Sequence[int], *, limit: int) -> dict[str, list[ItemLine]]:
    """The first unresolved items of each of these plans, the one at the head before others, by the plan's name."""
    return _by_plan(tx.execute(LONGEST_UNRESOLVED, {"plans": list(plan_ids), "limit": limit}))


def _by_plan(rows: Any) -> dict[str, list[ItemLine]]:
    found: dict[str, list[ItemLine]] = {}
    for each in map(lines.line, rows):
        found.setdefault(each.plan, []).append(each)
    return found


ASKED = text(f"select {LINE} where i.plan_id = :plan_id and i.id = any(:ids) order by i.position, i.id")


def asked(tx: Connection, plan_id: int, item_ids: Sequence[int]) -> list[ItemLine]:
    """Those of these items that are of this plan, in the order in which they stand."""
    return [lines.line(row) for row in tx.execute(ASKED, {"plan_id": plan_id, "ids": list(item_ids)})]
