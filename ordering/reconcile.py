"""Reconciling: what is declared running and has no process behind it is marked, then requeued or left to a person.

Not work in a queue: it runs at the start of every service and every second in the feeder, safe in any number (rule 10).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, Engine, Row, text
from sqlalchemy.exc import DBAPIError

from ordering import attempt, audit, db, finish, plans, said, tally
from ordering.attempt import END_DISPATCH, LOCK_DISPATCH, RELEASE_CANCELLED
from ordering.decide import Failed, runs_again
from ordering.model import OnInterrupt
from ordering.session import LOCK_CLASS, Session, unlocked

Alive = Callable[[Session], bool | None]  # True: that very process lives; False: it is gone; None: cannot be told from here

TRY_LOCK = text(f"select pg_try_advisory_xact_lock({LOCK_CLASS}, :id)")
MARK_LOST = text("update relevo.session set lost_at = now() where id = :id and lost_at is null and closed_at is null returning id")
GRACE_OVER = text("""
    select coalesce(lost_at < now() - interval '5 seconds', false) from relevo.session where id = :id and closed_at is null
""")
CLOSE = text("update relevo.session set closed_at = now(), lost_at = coalesce(lost_at, now()) where id = :id and closed_at is null")


def reconcile(engine: Engine, alive: Alive) -> int:
    """Take up every session whose lock is free: mark what it ran as interrupted, requeue what may be; how many were lost.

    A requeue waits for proof that the process is gone (`alive` says False), or else 5 s; a proved living one keeps its items.
    """
    with engine.begin() as tx:
        suspects = unlocked(tx)
    lost = 0
    for session in suspects:
        try:
            with engine.begin() as tx:
                lost += _take_up(tx, session, alive)
        except DBAPIError as error:
            # Its plan is held by somebody, for longer than the engine waits: it hides no other session, and its turn comes again.
            if not db.is_locked(error):
                raise
    return lost


def _take_up(tx: Connection, session: Session, alive: Alive) -> bool:
    """Reconcile one session; whether it was found lost just now."""
    if not tx.execute(TRY_LOCK, {"id": session.id}).scalar_one():
        return False
    found = tx.execute(MARK_LOST, {"id": session.id}).first() is not None
    if found:
        interrupt(tx, session, reason="process lost", counts=True)
    lives = alive(session)
    if lives is False or (lives is None and tx.execute(GRACE_OVER, {"id": session.id}).scalar_one_or_none()):
        close(tx, session.id, proved=lives is False)
    return found


OPEN_DISPATCHES = text("""
    select d.id, d.plan_id, d.size, d.cut from relevo.dispatch d
    where d.session_id = :id and d.claimed_at is not null and d.ended_at is null order by d.plan_id, d.id
""")
# A try counts only when the item was alone: which one of several ended the process, nobody knows. They go out again in batches of
# half that size. A stop suspects none.
INTERRUPT = text("""
    update relevo.item i set state = 'interrupted', error = :evidence, attempts = attempts + 1, tries = tries + :counted,
        unresolved_at = now(), ended_dispatch = null,
        batch_limit = case when d.size = 1 or not :suspect then i.batch_limit else greatest(1, d.size / 2) end
    from relevo.dispatch d where d.id = :dispatch_id and i.dispatch_id = d.id and i.state = 'dispatched' returning i.id, i.attempts
""")


def interrupt(tx: Connection, session: Session, *, reason: str, counts: bool, dispatch_id: UUID | None = None) -> None:
    """Mark what the session runs (or only `dispatch_id`) as interrupted, with the evidence; `counts`: it uses up a try."""
    process = session.process
    evidence = (
        f"{reason}: session {session.id}, host {process.host}, process {process.pid}, worker {process.worker}, "
        f"open since {session.opened_at:%Y-%m-%d %H:%M:%S %Z}"
    )
    for dispatch in tx.execute(OPEN_DISPATCHES, {"id": session.id}).all():
        if dispatch_id is not None and dispatch.id != dispatch_id:
            continue
        plans.lock(tx, dispatch.plan_id)
        if tx.execute(LOCK_DISPATCH, {"dispatch_id": dispatch.id}).first() is None:
            continue
        alone = dispatch.size == 1
        if dispatch.cut is not None and alone:
            _fail(tx, dispatch.id, dispatch.cut)
            continue
        counted = counts and alone
        values = {"dispatch_id": dispatch.id, "evidence": evidence, "counted": int(counted), "suspect": counts}
        for row in tx.execute(INTERRUPT, values).all():
            attempt.record_interrupted(tx, row.id, row.attempts, dispatch.id, counts=counted, reason=reason, error=evidence)
            audit.record(
                tx,
                actor="relevo",
                action="interrupt",
                plan_id=dispatch.plan_id,
                item_id=row.id,
                reason=evidence,
                after={"session": session.id, "host": process.host, "pid": process.pid, "since": session.opened_at},
            )


def _fail(tx: Connection, dispatch_id: UUID, cut: str) -> None:
    for run in attempt.claimed(tx, dispatch_id):
        finish.finish(tx, run, Failed(reason=cut, error=cut))


REQUEUE = text(f"""
    with requeued as (
        update relevo.item set state = 'waiting', at_head = false, dispatch_id = null, not_before = null, due_at = now()
        where id = :item_id and dispatch_id = :dispatch_id and state = 'interrupted'
        returning cast(:session_id as integer) as session_id, plan_id, task
    )
    {tally.REQUEUED}
""")
CUT = text(f"""
    select i.id, i.state, i.tries, {said.MAX_ATTEMPTS} as max_attempts, {said.ON_INTERRUPT} as on_interrupt
    from relevo.item i join relevo.plan p on p.id = i.plan_id left join relevo.task t on t.name = i.task
    where i.dispatch_id = :dispatch_id
""")


def close(tx: Connection, session_id: int, *, proved: bool, again: Sequence[Row[Any]] = ()) -> None:
    """Close a lost session: requeue what may run again, free the places of cancelled items. `again`: look at these dispatches anew.

    Without proof that the process is gone (`proved`) an undecided item stays its process's own: should it come back, it goes on.
    """
    for dispatch in (*tx.execute(OPEN_DISPATCHES, {"id": session_id}).all(), *again):
        plans.lock(tx, dispatch.plan_id)
        tx.execute(LOCK_DISPATCH, {"dispatch_id": dispatch.id})
        undecided = False
        for row in tx.execute(CUT, {"dispatch_id": dispatch.id}).all():
            if row.state == "cancelled":
                tx.execute(RELEASE_CANCELLED, {"item_id": row.id, "dispatch_id": dispatch.id})
            elif row.state == "interrupted" and runs_again(OnInterrupt(row.on_interrupt), row.tries, row.max_attempts):
                tx.execute(REQUEUE, {"item_id": row.id, "dispatch_id": dispatch.id, "session_id": session_id})
                audit.record(
                    tx,
                    actor="relevo",
                    action="requeue",
                    plan_id=dispatch.plan_id,
                    item_id=row.id,
                    after={"tries": row.tries, "max_attempts": row.max_attempts},
                    reason="the task is safe to repeat",
                )
            elif row.state == "interrupted":
                undecided = True
        if proved or not undecided:
            tx.execute(END_DISPATCH, {"dispatch_id": dispatch.id})
        plans.wake(tx, dispatch.plan_id)
    tx.execute(CLOSE, {"id": session_id})
    tally.fold(tx, session_id)


AWAIT_LOCK = text(f"select pg_advisory_xact_lock({LOCK_CLASS}, :id)")
COUNTED = text("""
    select distinct i.plan_id, a.dispatch_id as id from relevo.attempt a join relevo.item i on i.id = a.item_id
    where a.session_id = :id and a.outcome = 'interrupted' and a.counts order by i.plan_id, a.dispatch_id
""")
# A person's retry may have granted a fresh allowance since.
EXCUSE = text("""
    with excused as (
        update relevo.attempt set counts = false
        where session_id = :id and dispatch_id = :dispatch_id and outcome = 'interrupted' and counts returning item_id
    )
    update relevo.item i set tries = greatest(0, tries - 1) from excused where i.id = excused.item_id
""")


def excuse(tx: Connection, session: Session) -> None:
    """Take up the session of a process that ended itself because Postgres was away (rule 8): its interruption uses up no try.

    Where somebody who could not know that took it up first, the try is given back, and what may run again by that is requeued.
    """
    tx.execute(AWAIT_LOCK, {"id": session.id})
    if tx.execute(MARK_LOST, {"id": session.id}).first() is not None:
        interrupt(tx, session, reason="Postgres was away", counts=False)
    counted = tx.execute(COUNTED, {"id": session.id}).all()
    for dispatch in counted:
        plans.lock(tx, dispatch.plan_id)
        tx.execute(EXCUSE, {"id": session.id, "dispatch_id": dispatch.id})
    close(tx, session.id, proved=True, again=counted)
