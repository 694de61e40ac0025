"""Steps: the named parts of a body whose results are remembered, so that a later attempt does not repeat them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from ordering.decide import Asleep
from ordering.model import Claimed, State, StepKind
from ordering.roundtrip import together


@dataclass(frozen=True)
class Step:
    """What is known of a step. `result` is the JSON text of what it returned; `error` is why it failed, or cannot be used.

    A step that is `done` is never run again. `failures` counts those of all attempts.
    """

    number: int
    name: str
    kind: StepKind
    done: bool
    result: str | None = None
    failures: int = 0
    error: str | None = None


RECORDED = text("""
    select number, name, kind, done, result::text as result, failures, error from relevo.step where item_id = :item_id order by number
""")


def recorded(tx: Connection, item_id: int) -> list[Step]:
    """The steps that earlier attempts of the item have left, in their order."""
    (rows,) = together(tx, (RECORDED, {"item_id": item_id}))
    return [Step(row.number, row.name, StepKind(row.kind), row.done, row.result, row.failures, row.error) for row in rows]


# Rule 7, and the share lock keeps it true until the commit: nobody requeues or decides the item between the look and the write. An
# interrupted item that nobody has decided is still its process's own, and what that has finished must not be repeated.
RECORD = text("""
    with mine as (
        select id, state from relevo.item
        where id = :item_id and dispatch_id = :dispatch_id and state in ('dispatched', 'interrupted') for share
    ), step as (
        insert into relevo.step (item_id, number, name, kind, done, result, failures, error, attempt, started_at)
        select mine.id, :number, :name, 'step', :done, cast(:result as json), :failures, :error, :attempt,
            now() - make_interval(secs => cast(:took as double precision))
        from mine
        on conflict (item_id, number) do update set done = excluded.done, result = excluded.result, failures = excluded.failures,
            error = excluded.error, attempt = excluded.attempt, started_at = excluded.started_at, ended_at = excluded.ended_at
            where step.name = excluded.name and step.kind = excluded.kind
        returning number
    )
    select mine.state from mine, step
""")


def record(tx: Connection, run: Claimed, step: Step, *, took: float) -> bool:
    """Remember how the `step` ended that ran for `took` seconds; False if the body must end, since its item does not run any more.

    Bears a repetition whose first commit came through.
    """
    values = {
        "item_id": run.item_id, "dispatch_id": run.dispatch_id, "attempt": run.attempt, "number": step.number, "name": step.name,
        "done": step.done, "result": step.result, "failures": step.failures, "error": step.error, "took": took,
    }  # fmt: skip
    (rows,) = together(tx, (RECORD, values))
    return bool(rows) and rows[0].state == State.DISPATCHED


# The item's own row was written just before, in the same transaction and by the same clock. A sleep is done from its beginning: an
# item is fed again only when it is over, by time or by a person.
FALL_ASLEEP = text("""
    insert into relevo.step (item_id, number, name, kind, done, attempt, started_at, ended_at, wake_at)
    values (:item_id, :number, :name, 'sleep', true, :attempt, now(), now() + cast(:duration as interval),
        now() + cast(:duration as interval))
""")


def fall_asleep(tx: Connection, run: Claimed, sleep: Asleep) -> None:
    """Remember the sleep that has just put the item off."""
    values = {"item_id": run.item_id, "number": sleep.number, "name": sleep.name, "attempt": run.attempt, "duration": sleep.duration}
    tx.execute(FALL_ASLEEP, values)
