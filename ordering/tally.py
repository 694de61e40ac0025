"""The tally: what sessions have done, counted by the statements that record it, so that totals outlive sessions, attempts and exporters.

A session writes rows of its own, one for each plan and task, and no two sessions wait for each other. When a session closes, its rows
are folded into those of session 0, in the transaction that closes it: a total is the sum over all rows, and never goes down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

# Upper ends of the buckets of both histograms, in seconds; the last bucket has none.
BOUNDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 3600.0, 21_600.0, 86_400.0)
NOBODY = 0  # the session of what closed sessions have done, and of what no session had claimed
UNKNOWN = "unknown"  # the task of what names none that a worker ever offered: such names would be series without end

_KEY = "session_id, plan_id, task"
_SUMS = ("succeeded", "failed", "interrupted", "retries", "wait_seconds", "run_seconds")
_BUCKETS = ("waits", "runs")


def _counts(bucket: str) -> str:
    return f"array[{', '.join(f'count(*) filter (where {bucket} = {number})' for number in range(len(BOUNDS) + 1))}]"


def _on_conflict(*columns: str) -> str:
    added = {
        name: f"t.{name} + excluded.{name}"
        if name in _SUMS
        else f"array(select a + b from unnest(t.{name}, excluded.{name}) as each (a, b))"
        for name in columns
    }
    return f"on conflict ({_KEY}) do update set {', '.join(f'{name} = {value}' for name, value in added.items())}"


_LEVELS = f"cast(array[{', '.join(map(str, BOUNDS))}] as float[])"
# A statement that adds what `settled` has: session_id, plan_id, task, state, outcome, due_at, started_at, and took (seconds, or null).
SETTLED = f"""
    insert into relevo.tally as t ({_KEY}, succeeded, failed, retries, wait_seconds, run_seconds, waits, runs)
    select coalesce(session_id, {NOBODY}), plan_id, known_task,
        count(*) filter (where outcome = 'succeeded'), count(*) filter (where outcome = 'failed'),
        count(*) filter (where outcome = 'failed' and state = 'waiting'),
        coalesce(sum(waited), 0), coalesce(sum(ran), 0), {_counts("wait_bucket")}, {_counts("run_bucket")}
    from (
        select *, width_bucket(waited, {_LEVELS}) as wait_bucket, width_bucket(ran, {_LEVELS}) as run_bucket from (
            select *, case when started_at is not null then greatest(0, date_part('epoch', started_at - due_at)) end as waited,
                coalesce(took, date_part('epoch', now() - started_at)) as ran,
                case when session_id is null then coalesce((select name from relevo.task where name = settled.task), '{UNKNOWN}')
                    else task end as known_task
            from settled where outcome is not null
        ) measured
    ) placed
    group by session_id, plan_id, known_task order by known_task
    {_on_conflict("succeeded", "failed", "retries", "wait_seconds", "run_seconds", *_BUCKETS)}
"""
# The same for `interrupted` with session_id, plan_id and task: how long those ran, nobody knows.
INTERRUPTED = f"""
    insert into relevo.tally as t ({_KEY}, interrupted)
    select coalesce(session_id, {NOBODY}), plan_id, task, count(*) from interrupted group by session_id, plan_id, task order by task
    {_on_conflict("interrupted")}
"""
# And for `requeued` with the same columns: an interrupted item goes out again by itself.
REQUEUED = f"""
    insert into relevo.tally as t ({_KEY}, retries)
    select coalesce(session_id, {NOBODY}), plan_id, task, count(*) from requeued group by session_id, plan_id, task order by task
    {_on_conflict("retries")}
"""
FOLD = text(f"""
    with gone as (delete from relevo.tally where session_id = :id returning *)
    insert into relevo.tally as t ({_KEY}, {", ".join((*_SUMS, *_BUCKETS))})
    select {NOBODY}, plan_id, task, {", ".join((*_SUMS, *_BUCKETS))} from gone order by plan_id, task
    {_on_conflict(*_SUMS, *_BUCKETS)}
""")


def fold(tx: Connection, session_id: int) -> None:
    """Add what the session has done to what closed sessions have. The last thing that its closing locks, in the order of plan and task."""
    tx.execute(FOLD, {"id": session_id})


@dataclass(frozen=True)
class Total:
    """What all sessions have done for one plan and task since the beginning.

    `retries`: attempts that ended with another try to come by itself. `waits`, `runs`: how many attempts fell into each bucket of
    BOUNDS, by the seconds from due to started and by the seconds that the body ran; their sums are `wait_seconds` and `run_seconds`.
    An interrupted attempt is in neither, since nobody knows how far it got. One that its process took back afterwards stays counted.
    """

    plan: str
    task: str
    succeeded: int
    failed: int
    interrupted: int
    retries: int
    wait_seconds: float
    run_seconds: float
    waits: Sequence[int]
    runs: Sequence[int]


def _summed(buckets: str) -> str:
    return f"array[{', '.join(f'cast(sum(t.{buckets}[{number + 1}]) as bigint)' for number in range(len(BOUNDS) + 1))}] as {buckets}"


TOTALS = text(f"""
    select p.name as plan, t.task, {", ".join(f"cast(sum(t.{name}) as bigint) as {name}" for name in _SUMS[:4])},
        sum(t.wait_seconds) as wait_seconds, sum(t.run_seconds) as run_seconds, {", ".join(map(_summed, _BUCKETS))}
    from relevo.tally t join relevo.plan p on p.id = t.plan_id group by p.name, t.task order by p.name, t.task
""")


def totals(tx: Connection) -> list[Total]:
    """The totals by plan and task; they never go down."""
    return [Total(**row._mapping) for row in tx.execute(TOTALS)]
