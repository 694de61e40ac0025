"""What a person says about many dead letters at once: retry, skip or resolve, each letter once, with one event each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial

from sqlalchemy import Connection, Engine, text

from ordering import clock, db, dead, decision, items, plans
from ordering.dead import DEAD, Cursor, Which, behind, letter, page
from ordering.errors import Invalid, NotDead, UnknownGroup
from ordering.items import Edit
from ordering.model import UNRESOLVED, Item, State
from ordering.text import checked, storable

BATCH = 500  # letters of one transaction: less than 0.2 s on a busy machine, so that nobody waits long for their locks
MOST = 10_000  # letters that may be named in one call


class Verb(StrEnum):
    """What is decided."""

    RETRY = "retry"
    SKIP = "skip"
    RESOLVE = "resolve"


TO = {Verb.RETRY: State.WAITING, Verb.SKIP: State.SKIPPED, Verb.RESOLVE: State.RESOLVED}

# The order of locks: dispatch, item. A stream's line has no lock of the plan.
LOCK_DISPATCHES = text("""
    select id from relevo.dispatch where id in (select dispatch_id from relevo.item where id = any(:ids) and state = 'interrupted')
    order by id for no key update
""")
LOCK_LETTERS = text(f"""
    select i.id from relevo.item i join relevo.plan p on p.id = i.plan_id
    where i.id = any(:ids) and {DEAD} order by i.id for no key update of i
""")
# As `decision.DECIDE`, and the trail with it. `stood` is what was there before, which nobody changes any more: it is locked.
DECIDE = text("""
    with stood as (
        select id, state, attempts, error, dispatch_id from relevo.item where id = any(:ids)
    ), decided as (
        update relevo.item i set state = :state, at_head = false, dispatch_id = null, not_before = null,
            tries = case when :state = 'waiting' then 0 else i.tries end,
            replays = i.replays + case when :state = 'waiting' then 1 else 0 end,
            due_at = case when :state = 'waiting' then now() else i.due_at end,
            settled_at = case when :state = 'waiting' then null else now() end
        from stood where i.id = stood.id and i.state in ('failed', 'interrupted')
        returning i.id, i.plan_id, stood.state, stood.attempts, stood.error, stood.dispatch_id
    ), told as (
        insert into relevo.event (actor, action, plan_id, item_id, before, after, reason)
        select :actor, :verb, plan_id, id,
            jsonb_build_object('state', state, 'attempts', attempts, 'error', left(coalesce(error, ''), 2000)),
            jsonb_build_object('state', cast(:state as text)), :note
        from decided order by id
    )
    select id, plan_id, dispatch_id from decided order by id
""")
# As `attempt.END_IF_EMPTY`: a dispatch that still carries another unresolved letter stays open for it.
END_DISPATCHES = text("""
    update relevo.dispatch d set ended_at = now() where d.id = any(:dispatches) and d.ended_at is null
        and not exists (select from relevo.item where dispatch_id = d.id and state in ('dispatched', 'interrupted'))
""")


def decide(tx: Connection, verb: Verb, item_ids: Sequence[int], *, actor: str, note: str = "") -> list[int]:
    """Decide these dead letters, all or none; their ids in order. A retry grants each a fresh allowance of tries.

    Raises UnknownItem and NotDead for the first that cannot be decided, Invalid if `verb` is resolve and `note` is empty.
    """
    if len(set(item_ids)) > MOST:
        raise Invalid("items", f"are {len(set(item_ids))}; at most {MOST} can be named at once, choose them by plan or group.")
    ids = sorted(set(item_ids))
    done = _decide(tx, verb, ids, actor=actor, note=note)
    if len(done) < len(ids):
        raise no_letter(tx, min(set(ids) - set(done)), verb)
    return done


@dataclass(frozen=True)
class Batch:
    """One batch: the ids of what was decided, and where the next begins (None: nothing is left)."""

    done: Sequence[int]
    next: Cursor | None


CHOSEN = "i.id, i.plan_id, i.position"
BY = "and i.unresolved_at <= :until"


def decide_batch(
    tx: Connection, verb: Verb, chosen: Which, *, until: datetime, after: Cursor | None, actor: str, note: str = "", limit: int = BATCH
) -> Batch:
    """Decide up to `limit` of the chosen letters that had died by `until`, behind `after`.

    From batch to batch with the same `until`, each letter is met once, also one that dies again at once. Raises Invalid if `verb`
    is resolve and `note` is empty.
    """
    rows = tx.execute(page(CHOSEN, chosen, BY), {**behind(chosen, after), "until": until, "limit": limit}).all()
    done = _decide(tx, verb, [row.id for row in rows], actor=actor, note=note)
    last = rows[-1] if len(rows) == limit else None
    return Batch(done, None if last is None else Cursor(last.plan_id, last.position))


@dataclass(frozen=True)
class Decided:
    """What came of a decision on all chosen letters: how many were decided, and how many somebody else decided meanwhile."""

    decided: int
    meanwhile: int


def decide_all(
    engine: Engine, verb: Verb, chosen: Which, *, actor: str, note: str = "", tick: Callable[[int, int], None] = lambda done, total: None
) -> Decided:
    """Decide all chosen letters there are now, batch by batch, each in a transaction of its own; `tick` is told how many of how many.

    What was done stays done if it ends half-way, and another call does the rest. Raises UnknownGroup if the group has none,
    Invalid as `decide_batch`.
    """
    until, total = db.transact(engine, lambda tx: (clock.now(tx), dead.count(tx, chosen, until=clock.now(tx))))
    if total == 0 and chosen.group is not None:
        raise UnknownGroup(chosen.group)
    done, after = 0, None
    while True:
        batch = db.transact(engine, partial(decide_batch, verb=verb, chosen=chosen, until=until, after=after, actor=actor, note=note))
        done, after = done + len(batch.done), batch.next
        tick(done, total)
        if after is None:
            return Decided(done, max(0, total - done))


def retry_edited(tx: Connection, item_id: int, change: Edit, *, actor: str, note: str = "") -> Item:
    """Let one dead letter run again with other arguments. Raises UnknownItem, NotDead, Invalid naming the field."""
    if letter(tx, item_id) is None:
        raise no_letter(tx, item_id, Verb.RETRY)
    return decision.retry(tx, item_id, actor=actor, note=note, change=change)


def _decide(tx: Connection, verb: Verb, ids: Sequence[int], *, actor: str, note: str) -> list[int]:
    """Those of `ids` that were dead letters, decided."""
    if verb is Verb.RESOLVE and not note.strip():
        raise Invalid("note", "is empty; say how it was resolved.")
    if not actor.strip():
        raise Invalid("actor", "is empty; say who does this.")
    who = checked("actor", actor, 200)
    if not ids:
        return []
    tx.execute(LOCK_DISPATCHES, {"ids": ids})
    locked = list(tx.execute(LOCK_LETTERS, {"ids": ids}).scalars())
    if not locked:
        return []
    rows = tx.execute(DECIDE, {"ids": locked, "state": TO[verb], "verb": verb, "actor": who, "note": storable(note)}).all()
    dispatches = sorted({row.dispatch_id for row in rows if row.dispatch_id is not None})
    if dispatches:
        tx.execute(END_DISPATCHES, {"dispatches": dispatches})
    if verb is Verb.RETRY:
        for plan_id in sorted({row.plan_id for row in rows}):
            plans.wake(tx, plan_id)
    return [row.id for row in rows]


def no_letter(tx: Connection, item_id: int, verb: Verb | None = None) -> NotDead:
    """Why the item is no dead letter, and what helps; `verb` is what was to be done. Raises UnknownItem."""
    item = items.get(tx, item_id)
    if item.state is State.WAITING and verb is Verb.RETRY:
        return NotDead(item_id, "it is waiting, so it is queued already")
    if item.state not in UNRESOLVED:
        return NotDead(item_id, f"it is {item.state}")
    if plans.get(tx, item.plan).serial:
        helps = verb or "retry, skip or resolve"
        return NotDead(item_id, f"it belongs to the serial plan {item.plan!r}; {helps} it as an item of that plan")
    return NotDead(item_id, "it is interrupted and its process may still be running it; try again in some seconds")
