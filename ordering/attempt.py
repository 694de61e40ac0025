"""One try of one item: claim it, store its output, finish it. Every write names item, dispatch and expected state (rule 7)."""

from __future__ import annotations

import json
import random
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from ordering import audit, plans
from ordering.decide import DEFAULT_MAX_ATTEMPTS, AlreadyDone, Ended, Failed, NotYet, Succeeded, after
from ordering.model import Claimed, OnInterrupt, Outcome, State
from ordering.roundtrip import together
from ordering.text import RESULT_LIMIT, storable, storable_json

# Rule 6: touch the dispatch first, then read its items in a second statement, so that what a person changed meanwhile wins.
TOUCH = text("""
    update relevo.dispatch set claimed_at = now(), session_id = :session_id
    where id = :dispatch_id and ended_at is null and (claimed_at is null or session_id = :session_id) returning id
""")
READ = text("""
    select i.id, i.plan_id, p.name, p.concurrency = 1 as serial, i.task, i.args, i.kwargs, i.attempts, i.tries,
        coalesce(i.max_attempts, t.max_attempts, p.max_attempts, :max_attempts) as max_attempts,
        coalesce(i.on_interrupt, t.on_interrupt, p.on_interrupt,
            case when p.concurrency = 1 then 'hold' else 'requeue' end) as on_interrupt
    from relevo.item i join relevo.plan p on p.id = i.plan_id left join relevo.task t on t.name = i.task
    where i.dispatch_id = :dispatch_id and i.state = 'dispatched'
""")
COUNT_COPY = text("update relevo.dispatch set copies_dropped = copies_dropped + 1 where id = :dispatch_id")


def claim(tx: Connection, dispatch_id: UUID, *, session_id: int) -> Claimed | None:
    """Take the dispatch for this session and return its item as it is now; None if there is nothing to claim.

    Nothing to claim means a second copy (counted on the dispatch), a cancelled item, or a message nobody here sent.
    A session may repeat its own claim, since it cannot know whether a commit whose connection broke came through.
    """
    touched, items = together(
        tx,
        (TOUCH, {"dispatch_id": dispatch_id, "session_id": session_id}),
        (READ, {"dispatch_id": dispatch_id, "max_attempts": DEFAULT_MAX_ATTEMPTS}),
    )
    if not touched:
        tx.execute(COUNT_COPY, {"dispatch_id": dispatch_id})
        return None
    return _claimed(dispatch_id, items[0]) if items else None


def claimed(tx: Connection, dispatch_id: UUID) -> Claimed | None:
    """What the claimed dispatch runs, or None if its item is not out any more."""
    row = tx.execute(READ, {"dispatch_id": dispatch_id, "max_attempts": DEFAULT_MAX_ATTEMPTS}).one_or_none()
    return None if row is None else _claimed(dispatch_id, row)


def _claimed(dispatch_id: UUID, row: Any) -> Claimed:
    return Claimed(
        dispatch_id=dispatch_id,
        item_id=row.id,
        plan_id=row.plan_id,
        plan=row.name,
        serial=row.serial,
        task=row.task,
        args=row.args,
        kwargs=row.kwargs,
        attempt=row.attempts + 1,
        tries=row.tries,
        max_attempts=row.max_attempts,
        on_interrupt=OnInterrupt(row.on_interrupt),
    )


# One statement for the three rows of an outcome: the hand-off of a serial plan waits for it. Rule 7 is its where clause.
SETTLE = text("""
    with settled as (
        update relevo.item set
            state = :state, dispatch_id = null,
            at_head = at_head and :keeps_head and 'halt' = coalesce(
                (select on_failure from relevo.run where plan_id = item.plan_id order by id desc limit 1), 'halt'),
            not_before = case when cast(:until as timestamptz) is not null then cast(:until as timestamptz)
                when cast(:delay as interval) is not null then now() + cast(:delay as interval) end,
            error = :error, result = cast(:result as jsonb),
            args = coalesce(cast(:args as jsonb), args), kwargs = coalesce(cast(:kwargs as jsonb), kwargs),
            attempts = attempts + :attempted, tries = tries + :counted,
            unresolved_at = case when :state in ('failed', 'interrupted') then now() end,
            settled_at = case when :settled then now() end
        where id = :item_id and dispatch_id = :dispatch_id and state = 'dispatched'
        returning id, attempts
    ), ended as (
        update relevo.dispatch set ended_at = now()
        where id = :dispatch_id and ended_at is null and exists (select from settled)
        returning id, session_id, claimed_at
    ), recorded as (
        insert into relevo.attempt (item_id, number, dispatch_id, session_id, started_at, outcome, counts, reason, error)
        select settled.id, settled.attempts, ended.id, ended.session_id, coalesce(ended.claimed_at, now()),
            cast(:outcome as text), :counted = 1, :reason, :error
        from settled, ended where cast(:outcome as text) is not null
    )
    select id from settled
""")
LOCK_DISPATCH = text("select id from relevo.dispatch where id = :dispatch_id and ended_at is null for no key update")
END_DISPATCH = text("update relevo.dispatch set ended_at = now() where id = :dispatch_id and ended_at is null")
RELEASE_CANCELLED = text("""
    update relevo.item set at_head = false, dispatch_id = null
    where id = :item_id and dispatch_id = :dispatch_id and state = 'cancelled'
""")


def finish(tx: Connection, run: Claimed, ended: Ended) -> State | None:
    """Record how the claimed item's body `ended` and return its new state; None if somebody else decided meanwhile.

    In that case nothing changes but the trail, which keeps the late result; the place of a cancelled item is freed.
    """
    # Plan, dispatch, item: the order of locks everywhere. A stream's line takes no lock.
    lock = (plans.LOCK, {"id": run.plan_id}) if run.serial else (LOCK_DISPATCH, {"dispatch_id": run.dispatch_id})
    following = after(ended, serial=run.serial, tries=run.tries, max_attempts=run.max_attempts, jitter=random.random())
    reason, error, result, until = _written(ended)
    change = ended if isinstance(ended, Failed) else None
    settle = {
        "item_id": run.item_id,
        "dispatch_id": run.dispatch_id,
        "state": following.state,
        "outcome": following.outcome,
        "reason": reason,
        "keeps_head": following.keeps_head,
        "until": until,
        "delay": following.delay,
        "error": error,
        "result": result,
        "args": json.dumps(change.args) if change and change.args is not None else None,
        "kwargs": json.dumps(change.kwargs) if change and change.kwargs is not None else None,
        "attempted": int(following.outcome is not None),
        "counted": int(following.counts),
        "settled": following.state in (State.SUCCEEDED, State.SKIPPED),
    }
    _, settled = together(tx, lock, (SETTLE, settle))
    if not settled and restore(tx, run.item_id, run.dispatch_id):
        # Marked as interrupted and not decided yet: the process that holds the result was there all the time.
        settled = list(tx.execute(SETTLE, settle))
    if not settled:
        known = _own_commit(tx, run)
        if known is None:
            _keep_late(tx, run, following.outcome, reason or error or "")
        return known
    if following.outcome is None:
        actor = f"task {run.task}"
        audit.record(tx, actor=actor, action=following.state, plan_id=run.plan_id, item_id=run.item_id, reason=reason)
    return following.state


RECORD = text("""
    insert into relevo.attempt (item_id, number, dispatch_id, session_id, started_at, outcome, counts, reason, error)
    select :item_id, :number, id, session_id, coalesce(claimed_at, now()), :outcome, :counts, :reason, :error
    from relevo.dispatch where id = :dispatch_id
""")
RESTORE = text("""
    with undone as (
        delete from relevo.attempt a using relevo.item i
        where i.id = :item_id and i.state = 'interrupted' and i.dispatch_id = :dispatch_id
          and exists (select from relevo.dispatch d where d.id = :dispatch_id and d.ended_at is null)
          and a.item_id = i.id and a.number = i.attempts and a.dispatch_id = :dispatch_id
        returning a.counts
    )
    update relevo.item set state = 'dispatched', error = null,
        attempts = attempts - 1, tries = tries - cast((select counts from undone) as integer)
    where id = :item_id and state = 'interrupted' and dispatch_id = :dispatch_id and exists (select from undone)
    returning id
""")


def restore(tx: Connection, item_id: int, dispatch_id: UUID) -> bool:
    """Turn an interrupted item that nobody has decided back to running, on behalf of its living process; whether it was.

    Not once its dispatch has ended, as it does when the process was proved to be gone.
    """
    return tx.execute(RESTORE, {"item_id": item_id, "dispatch_id": dispatch_id}).first() is not None


def record(
    tx: Connection, item_id: int, number: int, dispatch_id: UUID, outcome: Outcome, *, counts: bool, reason: str, error: str | None
) -> None:
    """Add attempt `number` of the item to its history; `counts` tells whether it used up a try."""
    tx.execute(
        RECORD,
        {
            "item_id": item_id,
            "number": number,
            "dispatch_id": dispatch_id,
            "outcome": outcome,
            "counts": counts,
            "reason": reason,
            "error": error,
        },
    )


def _written(ended: Ended) -> tuple[str, str | None, str | None, datetime | None]:
    match ended:
        case Succeeded(result=result):
            written = json.dumps(storable_json(result), ensure_ascii=False)
            if len(written) > RESULT_LIMIT:
                written = json.dumps(f"a result of {len(written)} characters was too large to keep")
            return "", None, written, None
        case Failed(reason=reason, error=error):
            return storable(reason, 200), storable(error), None, None
        case AlreadyDone(reason=reason):
            return storable(reason, 2000), storable(reason, 2000), None, None
        case NotYet(until=until, reason=reason):
            return storable(reason, 2000), None, None, until


RECORDED = text("""
    select i.state from relevo.attempt a join relevo.item i on i.id = a.item_id
    where a.item_id = :item_id and a.number = :number and a.dispatch_id = :dispatch_id and a.outcome <> 'interrupted'
""")


def _own_commit(tx: Connection, run: Claimed) -> State | None:
    """The state this very attempt was finished with, if an earlier commit of it came through though its connection broke."""
    parameters = {"item_id": run.item_id, "number": run.attempt, "dispatch_id": run.dispatch_id}
    state = tx.execute(RECORDED, parameters).scalar_one_or_none()
    return State(state) if state else None


def _keep_late(tx: Connection, run: Claimed, outcome: Outcome | None, detail: str) -> None:
    tx.execute(RELEASE_CANCELLED, {"item_id": run.item_id, "dispatch_id": run.dispatch_id})
    tx.execute(END_DISPATCH, {"dispatch_id": run.dispatch_id})
    audit.record(
        tx,
        actor="relevo",
        action="late result",
        plan_id=run.plan_id,
        item_id=run.item_id,
        after={"dispatch": str(run.dispatch_id), "outcome": outcome, "detail": detail[:2000]},
        reason="the item was decided before its body ended",
    )


WRITE_OUTPUT = text("""
    insert into relevo.output (item_id, attempt, head, tail, left_out)
    values (:item_id, :attempt, :head, :tail, :left_out)
    on conflict (item_id, attempt) do update
        set head = excluded.head, tail = excluded.tail, left_out = excluded.left_out, updated_at = now()
""")


def write_output(tx: Connection, item_id: int, attempt: int, *, head: str, tail: str, left_out: int) -> None:
    """Store what the running attempt printed so far: its beginning, its end, and how many bytes lie between and were left out."""
    tx.execute(text("set local synchronous_commit = off"))
    tx.execute(WRITE_OUTPUT, {"item_id": item_id, "attempt": attempt, "head": head, "tail": tail, "left_out": left_out})


UNCLAIMED = text("""
    select id from relevo.dispatch where id = :dispatch_id and task = :task and claimed_at is null and ended_at is null
    for no key update
""")


def refuse(tx: Connection, dispatch_id: UUID, task: str, why: Failed) -> None:
    """Fail the item of an unclaimed dispatch whose message a worker could not take, such as one for a task it does not have."""
    plan_id = tx.execute(text("select plan_id from relevo.dispatch where id = :id"), {"id": dispatch_id}).scalar_one_or_none()
    if plan_id is None:
        return
    plans.lock(tx, plan_id)
    if tx.execute(UNCLAIMED, {"dispatch_id": dispatch_id, "task": task}).first() is not None:
        run = claimed(tx, dispatch_id)
        if run is not None:
            finish(tx, run, why)
            plans.wake(tx, plan_id)


CUT = text("update relevo.dispatch set cut = :reason where id = :dispatch_id and ended_at is null")


def announce_cut(tx: Connection, dispatch_id: UUID, reason: str) -> None:
    """Say why the process of this dispatch is about to be killed (a time limit), so that its loss is recorded as this failure."""
    tx.execute(CUT, {"dispatch_id": dispatch_id, "reason": reason})
