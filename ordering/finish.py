"""Finish: record how bodies ended, one verdict per item. Every write names item, dispatch and expected state (rule 7)."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from ordering import audit, head, plans, steps, tally
from ordering.attempt import END_IF_EMPTY, LOCK_DISPATCH, RELEASE_CANCELLED, claimed, restore
from ordering.decide import AlreadyDone, Asleep, Ended, Failed, Next, NotYet, PutBack, Succeeded, after
from ordering.model import Claimed, Dispatch, Outcome, State
from ordering.roundtrip import Call, together
from ordering.text import RESULT_LIMIT, storable, storable_json


@dataclass(frozen=True)
class Verdict:
    """How the body of a claimed item ended; `began` is how long after the claim it was started.

    `took` is how long the body ran; None where only Postgres's clock can tell.
    """

    run: Claimed
    ended: Ended
    began: timedelta = timedelta(0)
    took: timedelta | None = None


# One statement for all rows of the outcomes, of one item or of a hundred. A success in a stream leaves no attempt: the item itself
# says when it began, in which dispatch, and when it was settled.
SETTLE = text(f"""
    with given as (
        select * from jsonb_to_recordset(cast(:given as jsonb)) as g (
            id bigint, state text, outcome text, counts boolean, keeps_head boolean, until timestamptz, delay float, batch_limit integer,
            reason text, error text, result text, args text, kwargs text, began float, took float)
    ), settled as (
        update relevo.item i set
            state = g.state, dispatch_id = null, ended_dispatch = d.id, started_at = d.claimed_at + g.began * interval '1 second',
            at_head = i.at_head and g.keeps_head and 'halt' = coalesce(
                (select on_failure from relevo.run where plan_id = i.plan_id order by id desc limit 1), 'halt'),
            not_before = coalesce(g.until, now() + g.delay * interval '1 second'),
            error = g.error, result = cast(g.result as jsonb),
            args = coalesce(cast(g.args as jsonb), i.args), kwargs = coalesce(cast(g.kwargs as jsonb), i.kwargs),
            attempts = i.attempts + cast(g.outcome is not null as integer), tries = i.tries + cast(g.counts as integer),
            batch_limit = coalesce(g.batch_limit, i.batch_limit),
            unresolved_at = case when g.state = 'failed' then now() end,
            settled_at = case when g.state in ('succeeded', 'skipped') then now() end
        from given g, relevo.dispatch d
        where d.id = :dispatch_id and i.id = g.id and i.dispatch_id = d.id and i.state = 'dispatched'
        returning i.id, i.plan_id, i.task, i.state, i.attempts, i.started_at, coalesce(i.due_at, i.created_at) as due_at,
            d.session_id, g.outcome, g.counts, g.reason, g.error, g.took
    ), tallied as ({tally.SETTLED}), recorded as (
        insert into relevo.attempt (item_id, number, dispatch_id, session_id, started_at, outcome, counts, reason, error)
        select id, attempts, :dispatch_id, session_id, coalesce(started_at, now()), outcome, counts, reason, error
        from settled where outcome = 'failed' or (outcome = 'succeeded' and :serial)
    )
    select id from settled
""")


def finish(tx: Connection, run: Claimed, ended: Ended) -> State | None:
    """Record how the claimed item's body `ended` and return its new state; None if somebody else decided meanwhile."""
    return finish_all(tx, [Verdict(run, ended)])[0]


def finish_all(tx: Connection, verdicts: Sequence[Verdict]) -> list[State | None]:
    """Record how some of a dispatch's bodies ended; their items' new states, None where somebody else decided meanwhile.

    In that case nothing changes but the trail, which keeps the late result; the place of a cancelled item is freed. The dispatch
    ends with the last item that is out. A second call with the same verdicts, after a commit whose answer was lost, changes nothing.
    """
    return _finish(tx, verdicts)[0]


def finish_and_feed(tx: Connection, verdicts: Sequence[Verdict]) -> tuple[list[State | None], list[Dispatch]]:
    """As `finish_all` and then `head.feed` of their plan; in one round trip for the next head of a serial plan."""
    first = verdicts[0].run
    if not first.serial:
        return finish_all(tx, verdicts), head.feed(tx, first.plan_id, serial=False)
    states, fed = _finish(tx, verdicts, (head.FEED_SERIAL, {"plan_id": first.plan_id}))
    # Nothing fed: halted, drained, or the place was freed only after this statement.
    return states, head.dispatches(fed) or head.feed(tx, first.plan_id, serial=True)


def _finish(tx: Connection, verdicts: Sequence[Verdict], *then: Call) -> tuple[list[State | None], list[Any]]:
    """The items' new states, and the rows of the statement `then` that comes after."""
    first = verdicts[0].run
    dispatch = {"dispatch_id": first.dispatch_id}
    following = [_following(each) for each in verdicts]
    # Plan, dispatch, item: the order of locks everywhere. A stream's line takes no lock.
    locks: list[Call] = [(plans.LOCK, {"id": first.plan_id})] if first.serial else []
    locks.append((LOCK_DISPATCH, dispatch))
    answers = together(tx, *locks, _settle(verdicts, following), (END_IF_EMPTY, dispatch), *then)
    settled = {row.id for row in answers[len(locks)]}
    # Marked as interrupted and not decided yet: the process that holds the result was there all the time.
    restored = [
        pair
        for pair in zip(verdicts, following, strict=True)
        if pair[0].run.item_id not in settled and restore(tx, pair[0].run.item_id, first.dispatch_id)
    ]
    if restored:
        again, _ = together(tx, _settle(*map(list, zip(*restored, strict=True))), (END_IF_EMPTY, dispatch))
        settled |= {row.id for row in again}
    states = [_told(tx, *pair, pair[0].run.item_id in settled) for pair in zip(verdicts, following, strict=True)]
    return states, answers[-1] if then else []


def _following(verdict: Verdict) -> Next:
    run = verdict.run
    return after(verdict.ended, serial=run.serial, tries=run.tries, max_attempts=run.max_attempts, jitter=random.random())


def _settle(verdicts: Sequence[Verdict], following: Sequence[Next]) -> Call:
    # One parameter: fourteen arrays took the driver 0.6 ms for a single item, more than Postgres needs for all of it.
    given = json.dumps([_row(*pair) for pair in zip(verdicts, following, strict=True)])
    return SETTLE, {"dispatch_id": verdicts[0].run.dispatch_id, "serial": verdicts[0].run.serial, "given": given}


def _row(verdict: Verdict, following: Next) -> dict[str, Any]:
    written = _written(verdict.ended)
    row = {
        "id": verdict.run.item_id,
        "began": verdict.began.total_seconds(),
        "took": None if verdict.took is None else verdict.took.total_seconds(),
        "state": following.state,
        "outcome": following.outcome,
        "counts": following.counts,
        "keeps_head": following.keeps_head,
        "delay": None if following.delay is None else following.delay.total_seconds(),
        "until": None if written.until is None else written.until.isoformat(),
        "reason": written.reason,
        "error": written.error,
        "result": written.result,
    }
    match verdict.ended:
        case Failed(args=args, kwargs=kwargs):
            row |= {"args": _json(args), "kwargs": _json(kwargs)}
        case PutBack(limit=limit):
            row["batch_limit"] = limit
    return row


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


@dataclass(frozen=True)
class _Written:
    reason: str = ""
    error: str | None = None
    result: str | None = None
    until: datetime | None = None


def _written(ended: Ended) -> _Written:
    match ended:
        case Succeeded(result=None):
            return _Written(result="null")
        case Succeeded(result=result):
            written = json.dumps(storable_json(result), ensure_ascii=False)
            if len(written) > RESULT_LIMIT:
                written = json.dumps(f"a result of {len(written)} characters was too large to keep")
            return _Written(result=written)
        case Failed(reason=reason, error=str() as error) | PutBack(reason=reason, error=str() as error):
            return _Written(reason=storable(reason, 200), error=storable(error))
        case AlreadyDone(reason=reason):
            return _Written(reason=storable(reason, 2000), error=storable(reason, 2000))
        case NotYet(until=until, reason=reason):
            return _Written(reason=storable(reason, 2000), until=until)
        case Asleep(number=number, name=name):
            return _Written(reason=f"sleeps at step {number} {name!r}")
        case _:
            return _Written()


# What was recorded of this very dispatch already: an earlier commit of the same verdict came through though its connection broke.
RECORDED = text("select state from relevo.item where id = :item_id and ended_dispatch = :dispatch_id")


# What a task made of its item before the body ran, in the words of the trail.
BEFORE_THE_BODY = {State.SKIPPED: "skip", State.POSTPONED: "postpone"}


def _told(tx: Connection, verdict: Verdict, following: Next, settled: bool) -> State | None:
    """The item's new state, with the line that the trail gets where no attempt tells of it."""
    run, ended = verdict.run, verdict.ended
    written = _written(ended) if not settled or following.outcome is None else _Written()
    if not settled:
        known = tx.execute(RECORDED, {"item_id": run.item_id, "dispatch_id": run.dispatch_id}).scalar_one_or_none()
        if known is None:
            _keep_late(tx, run, following.outcome, written.reason or written.error or "")
        return State(known) if known else None
    if isinstance(ended, Asleep):
        steps.fall_asleep(tx, run, ended)
    if following.outcome is None and not isinstance(ended, PutBack):
        audit.record(
            tx,
            actor=f"task {run.task}",
            action=BEFORE_THE_BODY[following.state],
            plan_id=run.plan_id,
            item_id=run.item_id,
            reason=written.reason,
        )
    return following.state


def _keep_late(tx: Connection, run: Claimed, outcome: Outcome | None, detail: str) -> None:
    tx.execute(RELEASE_CANCELLED, {"item_id": run.item_id, "dispatch_id": run.dispatch_id})
    tx.execute(END_IF_EMPTY, {"dispatch_id": run.dispatch_id})
    audit.record(
        tx,
        actor="relevo",
        action="fence",
        plan_id=run.plan_id,
        item_id=run.item_id,
        after={"dispatch": str(run.dispatch_id), "outcome": outcome, "detail": detail[:2000]},
        reason="the item was decided before its body ended",
    )


UNCLAIMED = text("""
    select id from relevo.dispatch where id = :dispatch_id and task = :task and claimed_at is null and ended_at is null
    for no key update
""")


def refuse(tx: Connection, dispatch_id: UUID, task: str, why: Failed) -> None:
    """Fail the items of an unclaimed dispatch whose message a worker could not take, such as one for a task it does not have."""
    plan_id = tx.execute(text("select plan_id from relevo.dispatch where id = :id"), {"id": dispatch_id}).scalar_one_or_none()
    if plan_id is None:
        return
    plans.lock(tx, plan_id)
    if tx.execute(UNCLAIMED, {"dispatch_id": dispatch_id, "task": task}).first() is not None:
        runs = claimed(tx, dispatch_id)
        if runs:
            finish_all(tx, [Verdict(run, why) for run in runs])
            plans.wake(tx, plan_id)
