"""Signals: what a plan's state comes to in figures, read from Postgres at the moment of asking.

Nothing here locks anything. A million waiting items are counted in an index of their own, and what is settled is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row, TextClause, text

from ordering.errors import UnknownPlan
from ordering.model import State

COUNTED = (State.WAITING, State.POSTPONED, State.DISPATCHED, State.RUNNING, State.FAILED, State.INTERRUPTED)
RATIO_MINUTES = 5  # over which the retry ratio is taken


@dataclass(frozen=True)
class Signals:
    """A plan in figures. Ages are lengths of time, 0 where there is nothing to be old.

    `depth`: items due and waiting. `oldest_age`: how long the oldest of them has been due. `retry_ratio`: the share of the attempts of
    the last five minutes that ended with another try to come. `dead_letters`: items that nobody has decided and that do not run again by
    themselves. `blocked`: for how long a serial plan has been held up by one. `dispatched_age`, `running_age`: of what was handed out
    and not started, and of what runs, the longest. `items`: every item that is not settled, by state.
    """

    plan: str
    concurrency: int
    depth: int
    oldest_age: timedelta
    retry_ratio: float
    dead_letters: int
    blocked: timedelta
    dispatched_age: timedelta
    running_age: timedelta
    items: Mapping[State, int]


# The oldest of those to come is in the future, so it shows as 0 where nothing else waits, and is never the oldest where something does.
# An interruption whose session is not closed may still be taken back or run again by itself: see `dead.DEAD`.
_OF_PLANS = """
    with waiting as (
        select p.id as plan_id, ready.items + delayed.items as items, delayed.to_come, least(first.due, delayed.oldest) as oldest
        from relevo.plan p cross join lateral (
            select count(*) as items from relevo.item where plan_id = p.id and state = 'waiting' and not_before is null
        ) ready cross join lateral (
            select count(*) as items, count(*) filter (where not_before > now()) as to_come, min(not_before) as oldest
            from relevo.item where plan_id = p.id and state = 'waiting' and not_before is not null
        ) delayed left join lateral (
            select coalesce(due_at, created_at) as due from relevo.item
            where plan_id = p.id and state = 'waiting' and not_before is null order by coalesce(due_at, created_at) limit 1
        ) first on true
        {where_plan}
    ), postponed as (
        select plan_id, count(*) as items from relevo.item where state = 'postponed' {and_plan} group by plan_id
    ), undecided as (
        select i.plan_id, count(*) filter (where i.state = 'failed') as failed,
            count(*) filter (where i.state = 'interrupted') as interrupted,
            count(*) filter (where i.state = 'interrupted' and s.id is not null) as pending, min(i.unresolved_at) as oldest
        from relevo.item i
        left join relevo.dispatch d on d.id = i.dispatch_id and d.ended_at is null and i.state = 'interrupted'
        left join relevo.session s on s.id = d.session_id and s.closed_at is null
        where i.state in ('failed', 'interrupted') {and_i_plan} group by i.plan_id
    ), out as (
        select d.plan_id, count(*) filter (where d.claimed_at is null) as dispatched, count(d.claimed_at) as running,
            min(d.created_at) filter (where d.claimed_at is null) as handed_out, min(d.claimed_at) as claimed
        from relevo.dispatch d join relevo.item i on i.dispatch_id = d.id and i.state = 'dispatched'
        where d.ended_at is null {and_d_plan} group by d.plan_id
    ), done as (
        select plan_id, sum(succeeded + failed + interrupted) as attempts, sum(retries) as retries from relevo.tally group by plan_id
    ), before as (
        select plan_id, attempts, retries from relevo.sample where minute = coalesce(
            (select max(minute) from relevo.sample
                where minute between now() - interval '{twice} minutes' and now() - interval '{minutes} minutes'),
            (select min(minute) from relevo.sample where minute > now() - interval '{minutes} minutes'))
    )
    select p.id, p.name as plan, p.concurrency, waiting.items - waiting.to_come as depth, waiting.items as waiting,
        coalesce(postponed.items, 0) as postponed,
        coalesce(out.dispatched, 0) as dispatched, coalesce(out.running, 0) as running,
        coalesce(undecided.failed, 0) as failed, coalesce(undecided.interrupted, 0) as interrupted,
        coalesce(undecided.failed + undecided.interrupted - undecided.pending, 0) as dead_letters,
        {oldest} as oldest_age, {blocked} as blocked, {handed_out} as dispatched_age, {claimed} as running_age,
        coalesce(done.attempts, 0)::bigint as attempts, coalesce(done.retries, 0)::bigint as retries,
        coalesce(before.attempts, 0) as attempts_before, coalesce(before.retries, 0) as retries_before,
        exists (select from before) or p.created_at > now() - interval '{minutes} minutes' as compared
    from relevo.plan p
    join waiting on waiting.plan_id = p.id left join postponed on postponed.plan_id = p.id
    left join undecided on undecided.plan_id = p.id left join out on out.plan_id = p.id left join done on done.plan_id = p.id
    left join before on before.plan_id = p.id
    {where_plan}
"""


def _age(since: str) -> str:
    return f"greatest(interval '0', coalesce(now() - {since}, interval '0'))"


# Held up: an unresolved item keeps the head, or no run is open and none may be started.
_BLOCKED = """(case when p.concurrency = 1 then case
    when exists (select from relevo.item h where h.plan_id = p.id and h.at_head) then
        (select h.unresolved_at from relevo.item h where h.plan_id = p.id and h.at_head and h.state in ('failed', 'interrupted'))
    when not exists (select from relevo.run r where r.plan_id = p.id and r.ended_at is null) then undecided.oldest
    end end)"""


def _statement(of_one: bool) -> str:
    return _OF_PLANS.format(
        minutes=RATIO_MINUTES,
        twice=2 * RATIO_MINUTES,
        oldest=_age("waiting.oldest"),
        blocked=_age(_BLOCKED),
        handed_out=_age("out.handed_out"),
        claimed=_age("out.claimed"),
        and_plan="and plan_id = :plan_id" if of_one else "",
        and_i_plan="and i.plan_id = :plan_id" if of_one else "",
        and_d_plan="and d.plan_id = :plan_id" if of_one else "",
        where_plan="where p.id = :plan_id" if of_one else "",
    )


EVERY = text(f"{_statement(of_one=False)} order by p.name")
ONE = text(_statement(of_one=True))
# Right after a bulk add, before the table is analyzed, Postgres would read all of it several times: 3 s for two million items.
BY_INDEX = text("select set_config('enable_seqscan', 'off', true)")
AS_BEFORE = text("set local enable_seqscan to default")


def signals(tx: Connection) -> list[Signals]:
    """Every plan in figures, by name; a plan without anything is there with zeros."""
    return [_signals(row) for row in read(tx, EVERY)]


def read(tx: Connection, statement: TextClause, **values: object) -> Sequence[Row[Any]]:
    """The rows of a statement that counts in indexes."""
    tx.execute(BY_INDEX)
    rows = tx.execute(statement, values).all()
    tx.execute(AS_BEFORE)
    return rows


PLAN_ID = text("select id from relevo.plan where name = :name")


def signals_of(tx: Connection, plan: str) -> Signals:
    """One plan in figures. Raises UnknownPlan."""
    plan_id = tx.execute(PLAN_ID, {"name": plan}).scalar_one_or_none()
    if plan_id is None:
        raise UnknownPlan(plan)
    (row,) = read(tx, ONE, plan_id=plan_id)
    return _signals(row)


def _signals(row: Row[Any]) -> Signals:
    return Signals(
        plan=row.plan,
        concurrency=row.concurrency,
        depth=row.depth,
        oldest_age=row.oldest_age,
        retry_ratio=ratio(row.attempts - row.attempts_before, row.retries - row.retries_before) if row.compared else 0.0,
        dead_letters=row.dead_letters,
        blocked=row.blocked,
        dispatched_age=row.dispatched_age,
        running_age=row.running_age,
        items={state: row._mapping[state] for state in COUNTED},
    )


def ratio(attempts: int, retries: int) -> float:
    """The share of `attempts` that ended with another try to come, in 0..1; 0 of none."""
    # A retry after an interruption is counted when the session is closed, which may be later than the attempt.
    return min(1.0, retries / attempts) if attempts > 0 else 0.0
