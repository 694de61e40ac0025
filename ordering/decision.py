"""What a person says about a failed or interrupted item: retry, skip, resolve, with a name and a note."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

from ordering import audit, items, plans
from ordering.attempt import END_IF_EMPTY
from ordering.errors import Invalid, MayStillRun, NotAllowed
from ordering.items import Edit
from ordering.model import UNRESOLVED, Item, State

# A retry grants a fresh allowance of tries; the attempts go on counting.
DECIDE = text("""
    update relevo.item set state = :state, at_head = false, dispatch_id = null, not_before = null,
        tries = case when :state = 'waiting' then 0 else tries end,
        replays = replays + case when :state = 'waiting' then 1 else 0 end,
        due_at = case when :state = 'waiting' then now() else due_at end,
        settled_at = case when :state = 'waiting' then null else now() end
    where id = :id and state in ('failed', 'interrupted')
""")


def retry(tx: Connection, item_id: int, *, actor: str, note: str = "", change: Edit | None = None) -> Item:
    """Let the item run again at its place, with a fresh allowance of tries, edited by `change` first if that is given.

    Raises UnknownItem; NotAllowed if it is not failed or interrupted (a second press finds it waiting); MayStillRun while the
    process of an interrupted item may live.
    """
    return _decide(tx, item_id, State.WAITING, "retry", actor=actor, note=note, change=change)


def skip(tx: Connection, item_id: int, *, actor: str, note: str = "") -> Item:
    """Settle the item as skipped: it is not needed any more. Raises as `retry`."""
    return _decide(tx, item_id, State.SKIPPED, "skip", actor=actor, note=note)


def resolve(tx: Connection, item_id: int, *, actor: str, note: str) -> Item:
    """Settle the item as resolved by hand; `note` says how. Raises as `retry`, and Invalid if `note` is empty."""
    if not note.strip():
        raise Invalid("note", "is empty; say how it was resolved.")
    return _decide(tx, item_id, State.RESOLVED, "resolve", actor=actor, note=note)


# A closed session was proved gone, or had its 5 s to come back; an ended dispatch is fenced off from both.
MAY_RUN = text("""
    select i.id, s.host, s.pid from relevo.item i
    join relevo.dispatch d on d.id = i.dispatch_id and d.ended_at is null
    join relevo.session s on s.id = d.session_id and s.closed_at is null
    where i.id = any(:ids) and i.state = 'interrupted' order by i.id limit 1
""")


def refuse_if_it_may_run(tx: Connection, item_ids: Iterable[int]) -> None:
    """Raise MayStillRun for an interrupted item, of a plan that is locked, whose body another try could meet."""
    row = tx.execute(MAY_RUN, {"ids": list(item_ids)}).one_or_none()
    if row is not None:
        raise MayStillRun(row.id, row.host, row.pid)


VERBS = {"retry": "retried", "skip": "skipped", "resolve": "resolved"}


def _decide(tx: Connection, item_id: int, state: State, verb: str, *, actor: str, note: str, change: Edit | None = None) -> Item:
    held = items.hold(tx, item_id)
    old = held.item
    if old.state not in UNRESOLVED:
        hint = "it is queued already" if old.state in (State.WAITING, State.DISPATCHED) else "only failed and interrupted items are decided"
        raise NotAllowed(item_id, VERBS[verb], old.state, hint)
    if state is State.WAITING:
        refuse_if_it_may_run(tx, [item_id])
    if change is not None:
        items.apply(tx, old, change, actor=actor, states=list(UNRESOLVED))
    tx.execute(DECIDE, {"id": item_id, "state": state})
    if held.dispatch_id is not None:
        tx.execute(END_IF_EMPTY, {"dispatch_id": held.dispatch_id})
    audit.record(
        tx,
        actor=actor,
        action=verb,
        plan_id=held.plan.id,
        item_id=item_id,
        before={"state": old.state, "attempts": old.attempts, "error": (old.error or "")[:2000]},
        after={"state": state},
        reason=note,
    )
    plans.autostart(tx, held.plan, actor=actor)
    plans.wake(tx, held.plan.id)
    return items.get(tx, item_id)
