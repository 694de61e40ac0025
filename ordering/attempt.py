"""One try of one item: claim it, store its output, undo its interruption. How it ends is in finish.py."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from ordering import said, tally
from ordering.model import Claimed, OnInterrupt
from ordering.roundtrip import together

# Rule 6: touch the dispatch first, then read its items in a second statement, so that what a person changed meanwhile wins.
TOUCH = text("""
    update relevo.dispatch set claimed_at = now(), session_id = :session_id
    where id = :dispatch_id and ended_at is null and (claimed_at is null or session_id = :session_id) returning id
""")
READ = text(f"""
    select i.id, i.plan_id, p.name, p.concurrency = 1 as serial, i.task, i.args, i.kwargs, i.attempts, i.tries,
        i.created_at, exists (select from relevo.step s where s.item_id = i.id) as stepped,
        {said.MAX_ATTEMPTS} as max_attempts, {said.ON_INTERRUPT} as on_interrupt, d.size
    from relevo.dispatch d join relevo.item i on i.dispatch_id = d.id
    join relevo.plan p on p.id = i.plan_id left join relevo.task t on t.name = i.task
    where d.id = :dispatch_id and i.state = 'dispatched' order by i.position, i.id
""")
COUNT_COPY = text("update relevo.dispatch set copies_dropped = copies_dropped + 1 where id = :dispatch_id")


def claim(tx: Connection, dispatch_id: UUID, *, session_id: int) -> list[Claimed]:
    """Take the dispatch for this session and return its items as they are now, in their order; none if there is nothing to claim.

    Nothing to claim means a second copy (counted on the dispatch), cancelled items, or a message nobody here sent.
    A session may repeat its own claim, since it cannot know whether a commit whose connection broke came through.
    """
    touched, items = together(
        tx,
        (TOUCH, {"dispatch_id": dispatch_id, "session_id": session_id}),
        (READ, {"dispatch_id": dispatch_id}),
    )
    if not touched:
        tx.execute(COUNT_COPY, {"dispatch_id": dispatch_id})
        return []
    return [_claimed(dispatch_id, row) for row in items]


def claimed(tx: Connection, dispatch_id: UUID) -> list[Claimed]:
    """The items of the dispatch that are still out, in their order."""
    rows = tx.execute(READ, {"dispatch_id": dispatch_id})
    return [_claimed(dispatch_id, row) for row in rows]


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
        created_at=row.created_at,
        stepped=row.stepped,
        size=row.size,
    )


LOCK_DISPATCH = text("select id from relevo.dispatch where id = :dispatch_id and ended_at is null for no key update")
END_DISPATCH = text("update relevo.dispatch set ended_at = now() where id = :dispatch_id and ended_at is null")
# A dispatch is over when nothing of it is out any more.
END_IF_EMPTY = text("""
    update relevo.dispatch set ended_at = now() where id = :dispatch_id and ended_at is null
        and not exists (select from relevo.item where dispatch_id = :dispatch_id and state in ('dispatched', 'interrupted'))
    returning id
""")
RELEASE_CANCELLED = text("""
    update relevo.item set at_head = false, dispatch_id = null
    where id = :item_id and dispatch_id = :dispatch_id and state = 'cancelled'
""")


RECORD_INTERRUPTED = text(f"""
    with recorded as (
        insert into relevo.attempt (item_id, number, dispatch_id, session_id, started_at, outcome, counts, reason, error)
        select :item_id, :number, id, session_id, coalesce(claimed_at, now()), 'interrupted', :counts, :reason, :error
        from relevo.dispatch where id = :dispatch_id
        returning item_id, session_id
    ), interrupted as (
        select recorded.session_id, i.plan_id, i.task from recorded join relevo.item i on i.id = recorded.item_id
    )
    {tally.INTERRUPTED}
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
        batch_limit = (select case when batch_limit < d.size then d.size else batch_limit end
                       from relevo.dispatch d where d.id = :dispatch_id),
        attempts = attempts - 1, tries = tries - cast((select counts from undone) as integer)
    where id = :item_id and state = 'interrupted' and dispatch_id = :dispatch_id and exists (select from undone)
    returning id
""")


def restore(tx: Connection, item_id: int, dispatch_id: UUID) -> bool:
    """Turn an interrupted item that nobody has decided back to running, on behalf of its living process; whether it was.

    Not once its dispatch has ended, as it does when the process was proved to be gone.
    """
    return tx.execute(RESTORE, {"item_id": item_id, "dispatch_id": dispatch_id}).first() is not None


def record_interrupted(
    tx: Connection, item_id: int, number: int, dispatch_id: UUID, *, counts: bool, reason: str, error: str | None
) -> None:
    """Add attempt `number` of the item, which was interrupted, to its history; `counts` tells whether it used up a try."""
    tx.execute(
        RECORD_INTERRUPTED,
        {
            "item_id": item_id,
            "number": number,
            "dispatch_id": dispatch_id,
            "counts": counts,
            "reason": reason,
            "error": error,
        },
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


CUT = text("update relevo.dispatch set cut = :reason where id = :dispatch_id and ended_at is null")


def announce_cut(tx: Connection, dispatch_id: UUID, reason: str) -> None:
    """Say why the process of this dispatch is about to be killed (a time limit), so that its loss is recorded as this failure."""
    tx.execute(CUT, {"dispatch_id": dispatch_id, "reason": reason})
