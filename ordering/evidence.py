"""What is known of an item that is out or unresolved, for whoever decides: its last attempt, who ran it, what it printed, its steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from ordering import said
from ordering.model import OnInterrupt

OUTPUT_SHOWN = 1_500  # characters, the last ones


@dataclass(frozen=True)
class Evidence:
    """Of one item. `attempt`, `started_at`, `ended_at` and `reason` are its latest attempt's (the one under way has not ended).

    `session`, `worker`, `host` and `pid` name the pool process that ran it. `output` is the end of what it printed. `step` is the name
    of the last finished step, `steps` how many are finished. `on_interrupt` is what holds for it: requeue means that the task is safe
    to repeat. `max_attempts` is its allowance of tries.
    """

    item: int
    attempt: int | None
    started_at: datetime | None
    ended_at: datetime | None
    reason: str
    session: int | None
    worker: str | None
    host: str | None
    pid: int | None
    output: str | None
    step: str | None
    steps: int
    on_interrupt: OnInterrupt
    max_attempts: int


EVIDENCE = text(f"""
    select i.id as item, coalesce(run.number, a.number) as attempt, coalesce(run.started_at, a.started_at) as started_at,
        case when run.number is null then a.ended_at end as ended_at, coalesce(a.reason, '') as reason,
        s.id as session, s.worker, s.host, s.pid,
        right(case when o.left_out > 0 then o.tail else o.head || o.tail end, {OUTPUT_SHOWN}) as output,
        last.name as step, coalesce(last.steps, 0) as steps, {said.ON_INTERRUPT} as on_interrupt, {said.MAX_ATTEMPTS} as max_attempts
    from relevo.item i join relevo.plan p on p.id = i.plan_id left join relevo.task t on t.name = i.task
    left join lateral (
        select i.attempts + 1 as number, d.claimed_at as started_at, d.session_id from relevo.dispatch d
        where d.id = i.dispatch_id and i.state = 'dispatched' and d.claimed_at is not null) run on true
    left join lateral (
        select number, started_at, ended_at, reason, session_id from relevo.attempt
        where item_id = i.id order by number desc limit 1) a on true
    left join relevo.session s on s.id = coalesce(run.session_id, a.session_id)
    left join relevo.output o on o.item_id = i.id and o.attempt = coalesce(run.number, a.number)
    left join lateral (
        select name, count(*) over () as steps from relevo.step where item_id = i.id and done order by number desc limit 1) last on true
    where i.id = any(:ids)
""")


def evidence(tx: Connection, item_ids: Iterable[int]) -> dict[int, Evidence]:
    """What is known of each of these items, by id."""
    rows = tx.execute(EVIDENCE, {"ids": list(item_ids)})
    return {row.item: Evidence(**{**row._mapping, "on_interrupt": OnInterrupt(row.on_interrupt)}) for row in rows}
