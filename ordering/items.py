"""Items as people handle them: read one, edit, postpone, cancel. Adding, moving and deciding have files of their own."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from ordering import attempt, audit, clock, plans
from ordering.attempt import END_IF_EMPTY
from ordering.beside import beside
from ordering.errors import Invalid, NotAllowed, UnknownItem
from ordering.model import Item, Json, OnInterrupt, Plan, State
from ordering.roundtrip import together
from ordering.text import ARGS_LIMIT, checked, checked_json, visible

STOP_CHANNEL = "relevo_stop"
FARTHEST = timedelta(days=3660)  # no delay beyond ten years: such a value is a slip, and an item nobody will see again
TITLE_LIMIT = 12_000
KIND_LIMIT = 100
TASK_LIMIT = 200

# Running is not written: it is read from the dispatch being claimed.
STATE = "case when i.state = 'dispatched' and d.claimed_at is not null then 'running' else i.state end"
COLUMNS = f"""
    i.id, i.plan_id, p.name as plan, i.position, {STATE} as state, i.at_head, i.task, i.args, i.kwargs, i.title, i.kind, i.key,
    i.entry, i.repairs, i.fact_id as fact, i.not_before, i.on_interrupt, i.max_attempts, i.attempts, i.tries, i.replays, i.error, i.result,
    i.created_at, i.settled_at
"""
TABLES = "relevo.item i join relevo.plan p on p.id = i.plan_id left join relevo.dispatch d on d.id = i.dispatch_id"
GET = text(f"select {COLUMNS} from {TABLES} where i.id = :id")


def item(row: Any) -> Item:
    """An Item from a row of COLUMNS, as a mapping."""
    values = dict(row)
    values["state"] = State(values["state"])
    values["on_interrupt"] = OnInterrupt(values["on_interrupt"]) if values["on_interrupt"] else None
    return Item(**values)


def get(tx: Connection, item_id: int) -> Item:
    """The item with this id. Raises UnknownItem."""
    row = tx.execute(GET, {"id": item_id}).mappings().one_or_none()
    if row is None:
        raise UnknownItem(item_id)
    return item(row)


@dataclass(frozen=True)
class Held:
    """An item whose plan, dispatch and own row are locked, in that order; `size` is how many items the dispatch was fed with."""

    item: Item
    plan: Plan
    dispatch_id: UUID | None = None
    session_id: int | None = None
    size: int = 1


LOCK_PLAN = text(f"""
    select {plans.COLUMNS} from relevo.plan where id = (select plan_id from relevo.item where id = :id) for no key update
""")
LOCK_DISPATCH = text("""
    select id, session_id, size from relevo.dispatch
    where id = (select dispatch_id from relevo.item where id = :id) for no key update
""")
LOCK_ITEM = text("select dispatch_id from relevo.item where id = :id for no key update")


def hold(tx: Connection, item_id: int) -> Held:
    """Lock plan, dispatch and item, each in a statement of its own, and read what stands then. Raises UnknownItem."""
    of = {"id": item_id}
    plan, dispatches, locked, found = together(tx, (LOCK_PLAN, of), (LOCK_DISPATCH, of), (LOCK_ITEM, of), (GET, of))
    if not found:
        raise UnknownItem(item_id)
    dispatch, now = next(iter(dispatches), None), item(found[0]._asdict())
    if locked[0].dispatch_id != (dispatch.id if dispatch else None):
        # A stream is fed without the plan's lock and won in between. Locked in the wrong order, once in a blue moon: should
        # its finish come at this very moment, Postgres breaks the tie and the transaction is run again.
        dispatch, now = tx.execute(LOCK_DISPATCH, of).one_or_none(), get(tx, item_id)
    held = Held(now, plans.read(plan[0]._asdict()))
    return held if dispatch is None else Held(now, held.plan, dispatch.id, dispatch.session_id, dispatch.size)


EDITABLE = (State.WAITING, State.POSTPONED, State.DISPATCHED)
EDIT = text("""
    update relevo.item set task = :task, args = cast(:args as jsonb), kwargs = cast(:kwargs as jsonb), title = :title, kind = :kind,
        due_at = case when not_before is not null and cast(:not_before as timestamptz) is null then now() else due_at end,
        not_before = :not_before, on_interrupt = :on_interrupt, max_attempts = :max_attempts
    where id = :id and state = any(:states)
""")


WITHDRAW = text("""
    update relevo.item set state = 'waiting', at_head = false, dispatch_id = null where id = :id and state = 'dispatched'
""")


@dataclass(frozen=True)
class Edit:
    """What to change; None leaves a field as it is. `not_before` is for what waits or is dispatched; a past time is none."""

    task: str | None = None
    args: list[Json] | None = None
    kwargs: dict[str, Json] | None = None
    title: str | None = None
    kind: str | None = None
    on_interrupt: OnInterrupt | None = None
    max_attempts: int | None = None
    not_before: datetime | None = None


def edit(tx: Connection, item_id: int, change: Edit, *, actor: str) -> Item:
    """Change an item that has not started; what is dispatched and not claimed runs as edited (rule 6).

    Raises UnknownItem, NotAllowed once it runs or has ended, Invalid naming the field.
    """
    held = hold(tx, item_id)
    old = held.item
    if old.state not in EDITABLE:
        raise NotAllowed(item_id, "edited", old.state, "only waiting, postponed and dispatched items can be edited")
    if held.dispatch_id is not None and (change.task not in (None, old.task) or change.not_before is not None):
        # The message names the old task and lies in its queue, or comes too early: it is taken back, and the item is fed anew.
        tx.execute(WITHDRAW, {"id": item_id})
        tx.execute(END_IF_EMPTY, {"dispatch_id": held.dispatch_id})
        plans.wake(tx, held.plan.id)
    return apply(tx, old, change, actor=actor, states=list(EDITABLE))


def apply(tx: Connection, old: Item, change: Edit, *, actor: str, states: list[State]) -> Item:
    """Write `change` to the held item `old` if it is in one of `states`, with one event. Raises Invalid."""
    if change.max_attempts is not None and not 1 <= change.max_attempts <= 1000:
        raise Invalid("max_attempts", f"{change.max_attempts} is out of range; use 1 to 1000.")
    if change.task == "":
        raise Invalid("task", "is empty; name a task, for example shell.")
    given = {name: value for name, value in vars(change).items() if value is not None}
    tx.execute(
        EDIT,
        {
            "id": old.id,
            "states": states,
            "task": checked("task", change.task or old.task, TASK_LIMIT),
            "args": checked_json("args", old.args if change.args is None else change.args, ARGS_LIMIT),
            "kwargs": checked_json("args", old.kwargs if change.kwargs is None else change.kwargs, ARGS_LIMIT),
            "title": old.title if change.title is None else visible("title", change.title, TITLE_LIMIT),
            "kind": old.kind if change.kind is None else visible("kind", change.kind, KIND_LIMIT),
            "not_before": old.not_before if change.not_before is None else _start(tx, old, change.not_before),
            "on_interrupt": change.on_interrupt or old.on_interrupt,
            "max_attempts": change.max_attempts or old.max_attempts,
        },
    )
    audit.record(
        tx,
        actor=actor,
        action="edit",
        plan_id=old.plan_id,
        item_id=old.id,
        before={name: getattr(old, name) for name in given},
        after=given,
    )
    return get(tx, old.id)


def _start(tx: Connection, old: Item, wanted: datetime) -> datetime | None:
    """The time before which the item does not start, None for now. Raises NotAllowed, Invalid."""
    if old.state not in (State.WAITING, State.DISPATCHED):
        raise NotAllowed(old.id, "given another start", old.state, "only an item that waits can; postpone it to another time")
    now = clock.now(tx)
    return wanted if checked_time("not_before", wanted, now) > now else None


POSTPONE = text("""
    update relevo.item set
        state = case when :until > now() then 'postponed' else 'waiting' end,
        not_before = case when :until > now() then cast(:until as timestamptz) end,
        due_at = case when state = 'postponed' and :until <= now() then now() else due_at end,
        at_head = false, dispatch_id = null
    where id = :id and state in ('waiting', 'postponed', 'dispatched')
""")


def checked_time(field: str, when: datetime, now: datetime) -> datetime:
    """`when` if it names its zone and is not more than ten years away; else raise Invalid naming `field`."""
    if when.tzinfo is None:
        raise Invalid(field, "has no time zone; write for example 2030-01-31T09:00:00Z.")
    if when - now > FARTHEST:
        raise Invalid(field, "is more than ten years away; use a nearer time.")
    return when


def postpone(tx: Connection, item_id: int, until: datetime, *, actor: str, reason: str = "") -> Item:
    """Take the item out of the line until `until`; it then stands at its old position. A past time puts it back now.

    Raises UnknownItem, NotAllowed once it runs or has ended, Invalid.
    """
    held = hold(tx, item_id)
    if held.item.state not in EDITABLE:
        raise NotAllowed(item_id, "postponed", held.item.state, "only waiting, postponed and dispatched items can be postponed")
    until = checked_time("until", until, clock.now(tx))
    tx.execute(POSTPONE, {"id": item_id, "until": until})
    if held.dispatch_id is not None:
        tx.execute(END_IF_EMPTY, {"dispatch_id": held.dispatch_id})
    audit.record(
        tx,
        actor=actor,
        action="postpone",
        plan_id=held.plan.id,
        item_id=item_id,
        before={"state": held.item.state, "not_before": held.item.not_before},
        after={"until": until},
        reason=reason,
    )
    plans.wake(tx, held.plan.id)
    return get(tx, item_id)


CANCEL = text("""
    update relevo.item set state = 'cancelled', settled_at = now(), not_before = null,
        at_head = at_head and :running, dispatch_id = case when :running then dispatch_id end,
        attempts = attempts + cast(:running as integer), error = case when :running then 'cancelled while it ran' else error end
    where id = :id and state in ('waiting', 'postponed', 'dispatched') returning attempts
""")
STOP = text("select pg_notify(:channel, cast(:session_id as text))")


def cancel(tx: Connection, item_id: int, *, actor: str, reason: str = "") -> Item:
    """Settle an item that has not ended as cancelled; a running body is stopped and keeps the place until it is gone.

    Raises UnknownItem, NotAllowed once it has ended, or while it runs in a batch of several.
    """
    held = hold(tx, item_id)
    if held.item.state not in (*EDITABLE, State.RUNNING):
        raise NotAllowed(item_id, "cancelled", held.item.state, "skip or resolve it" if not held.item.settled_at else "it has ended")
    running = held.item.state is State.RUNNING
    if running and held.size > 1:
        # To stop its body is to end the process, and with it what its neighbours are at.
        raise NotAllowed(item_id, "cancelled", "running", f"its batch of {held.size} is over in about a second")
    stood: dict[str, Any] = {"state": held.item.state}
    if not running:  # where an undo puts it back
        place = {"position": format(held.item.position, "f"), **beside(tx, held.plan.id, item_id)}
        stood |= {"not_before": held.item.not_before, **place}
    number = tx.execute(CANCEL, {"id": item_id, "running": running}).scalar_one()
    if held.dispatch_id is not None and not running:
        tx.execute(END_IF_EMPTY, {"dispatch_id": held.dispatch_id})
    if running and held.dispatch_id is not None:
        attempt.record_interrupted(tx, item_id, number, held.dispatch_id, counts=False, reason="cancelled", error=reason or None)
        # The dispatch stays open, and with it the head, until the process has let go: never two bodies of a serial plan.
        tx.execute(STOP, {"channel": STOP_CHANNEL, "session_id": held.session_id})
    audit.record(tx, actor=actor, action="cancel", plan_id=held.plan.id, item_id=item_id, before=stood, reason=reason)
    plans.wake(tx, held.plan.id)
    return get(tx, item_id)
