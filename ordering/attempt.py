"""One try of one item: claim it, store its output, finish it. Every write names item, dispatch and expected state (rule 7)."""

from __future__ import annotations

import json
import random
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, text

from ordering import audit, plans
from ordering.decide import AlreadyDone, Ended, Failed, NotYet, Succeeded, after
from ordering.model import Claimed, OnFailure, OnInterrupt, Outcome, State
from ordering.text import RESULT_LIMIT, storable, storable_json

# Rule 6: touch the dispatch first, then read its items in a second statement, so that what a person changed meanwhile wins.
TOUCH = text("""
    update relevo.dispatch set claimed_at = now(), session_id = :session_id
    where id = :dispatch_id and claimed_at is null and ended_at is null returning id
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


def claim(tx: Connection, dispatch_id: UUID, *, session_id: int, default_max_attempts: int) -> Claimed | None:
    """Take the dispatch for this session and return its item as it is now; None if there is nothing to claim.

    Nothing to claim means a second copy (counted on the dispatch), a cancelled item, or a message nobody here sent.
    """
    if tx.execute(TOUCH, {"dispatch_id": dispatch_id, "session_id": session_id}).first() is None:
        tx.execute(COUNT_COPY, {"dispatch_id": dispatch_id})
        return None
    row = tx.execute(READ, {"dispatch_id": dispatch_id, "max_attempts": default_max_attempts}).one_or_none()
    if row is None:
        return None
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


POLICY = text("select on_failure from relevo.run where plan_id = :plan_id order by id desc limit 1")
SETTLE = text("""
    update relevo.item set
        state = :state, at_head = at_head and :keeps_head, dispatch_id = null,
        not_before = case when cast(:until as timestamptz) is not null then cast(:until as timestamptz)
            when cast(:delay as interval) is not null then now() + cast(:delay as interval) end,
        error = :error, result = cast(:result as jsonb),
        args = coalesce(cast(:args as jsonb), args), kwargs = coalesce(cast(:kwargs as jsonb), kwargs),
        attempts = attempts + :attempted, tries = tries + :counted,
        settled_at = case when :settled then now() end
    where id = :item_id and dispatch_id = :dispatch_id and state = 'dispatched'
    returning attempts
""")
END_DISPATCH = text("update relevo.dispatch set ended_at = now() where id = :dispatch_id and ended_at is null returning claimed_at")
RECORD = text("""
    insert into relevo.attempt (item_id, number, dispatch_id, session_id, started_at, outcome, counts, reason, error)
    select :item_id, :number, id, session_id, coalesce(claimed_at, now()), :outcome, :counts, :reason, :error
    from relevo.dispatch where id = :dispatch_id
""")
RELEASE_CANCELLED = text("""
    update relevo.item set at_head = false, dispatch_id = null
    where id = :item_id and dispatch_id = :dispatch_id and state = 'cancelled'
""")


def finish(tx: Connection, claimed: Claimed, ended: Ended) -> State | None:
    """Record how the claimed item's body `ended` and return its new state; None if somebody else decided meanwhile.

    In that case nothing changes but the trail, which keeps the late result; the place of a cancelled item is freed.
    """
    if claimed.serial:
        plans.lock(tx, claimed.plan_id)
        halts = tx.execute(POLICY, {"plan_id": claimed.plan_id}).scalar_one_or_none() != OnFailure.CONTINUE
    else:
        halts = False
    following = after(
        ended, serial=claimed.serial, halts=halts, tries=claimed.tries, max_attempts=claimed.max_attempts, jitter=random.random()
    )
    reason, error, result, until = _written(ended)
    tx.execute(END_DISPATCH, {"dispatch_id": claimed.dispatch_id})
    row = tx.execute(
        SETTLE,
        {
            "item_id": claimed.item_id,
            "dispatch_id": claimed.dispatch_id,
            "state": following.state,
            "keeps_head": following.keeps_head,
            "until": until,
            "delay": following.delay,
            "error": error,
            "result": result,
            "args": json.dumps(ended.args) if isinstance(ended, Failed) and ended.args is not None else None,
            "kwargs": json.dumps(ended.kwargs) if isinstance(ended, Failed) and ended.kwargs is not None else None,
            "attempted": int(following.outcome is not None),
            "counted": int(following.counts),
            "settled": following.state in (State.SUCCEEDED, State.SKIPPED),
        },
    ).one_or_none()
    if row is None:
        _keep_late(tx, claimed, following.outcome, reason or error or "")
        return None
    if following.outcome is None:
        audit.record(tx, actor=f"task {claimed.task}", action=following.state, plan_id=claimed.plan_id, item_id=claimed.item_id, reason=reason)
    else:
        record(tx, claimed.item_id, row.attempts, claimed.dispatch_id, following.outcome, counts=following.counts, reason=reason, error=error)
    return following.state


def record(
    tx: Connection, item_id: int, number: int, dispatch_id: UUID, outcome: Outcome, *, counts: bool, reason: str, error: str | None
) -> None:
    """Add attempt `number` of the item to its history; `counts` tells whether it used up a try."""
    tx.execute(
        RECORD,
        {"item_id": item_id, "number": number, "dispatch_id": dispatch_id, "outcome": outcome, "counts": counts, "reason": reason, "error": error},
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


def _keep_late(tx: Connection, claimed: Claimed, outcome: Outcome | None, detail: str) -> None:
    tx.execute(RELEASE_CANCELLED, {"item_id": claimed.item_id, "dispatch_id": claimed.dispatch_id})
    audit.record(
        tx, actor="relevo", action="late result", plan_id=claimed.plan_id, item_id=claimed.item_id,
        after={"dispatch": str(claimed.dispatch_id), "outcome": outcome, "detail": detail[:2000]},
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
