"""Schedules as people handle them: create, put, pause, resume, remove, show. `tick` adds their items.

These verbs change no line, so they lock the schedule's row only and no plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, text
from sqlalchemy.exc import IntegrityError

from ordering import audit, clock, cron, plans
from ordering.errors import Invalid, ScheduleExists, UnknownSchedule
from ordering.model import Json, Missed, NewItem
from ordering.row import row_of

SHOWN = 5  # coming ticks that are shown


@dataclass(frozen=True)
class NewSchedule:
    """What to add to which plan and when; `declared`: a catalogue says so."""

    name: str
    plan: str
    cron: str
    task: str
    args: list[Json] = field(default_factory=list)
    kwargs: dict[str, Json] = field(default_factory=dict)
    title: str = ""
    kind: str = ""
    timezone: str = "UTC"
    missed: Missed = Missed.ONE
    declared: bool = False


@dataclass(frozen=True)
class Schedule:
    """A schedule as it stands. `ticks` are the coming ones; `problem` says why it cannot tick, if it cannot.

    `overdue`: its tick was due and is not made; no feeder is there to make it, or its plan is locked.
    """

    name: str
    plan: str
    cron: str
    timezone: str
    missed: Missed
    task: str
    args: list[Json]
    kwargs: dict[str, Json]
    title: str
    kind: str
    paused: bool
    declared: bool
    next_at: datetime
    last_at: datetime | None
    created_at: datetime
    ticks: Sequence[datetime] = ()
    problem: str | None = None
    overdue: bool = False


COLUMNS = """
    s.name, p.name as plan, s.cron, s.timezone, s.missed, s.task, s.args, s.kwargs, s.title, s.kind, s.paused, s.declared,
    s.next_at, s.last_at, s.created_at
"""
FROM = "relevo.schedule s join relevo.plan p on p.id = s.plan_id"
PAGE = text(f"""
    select {COLUMNS} from {FROM} where s.name > :after and (cast(:plan as text) is null or p.name = :plan)
        and (cast(:text as text) is null or strpos(lower(s.name || ' ' || s.title || ' ' || s.task), lower(:text)) > 0)
    order by s.name limit cast(:limit as bigint)
""")
GET = text(f"select {COLUMNS} from {FROM} where s.name = :name")


def list_(tx: Connection, *, plan: str | None = None) -> list[Schedule]:
    """Every schedule, or those that add to `plan`, by name. Raises UnknownPlan."""
    return page(tx, plan=None if plan is None else plans.get(tx, plan).name, limit=None)[0]


def page(
    tx: Connection, *, limit: int | None, after: str = "", plan: str | None = None, containing: str | None = None
) -> tuple[list[Schedule], str | None]:
    """Up to `limit` schedules by name, behind the name `after`, and where the next page begins.

    Only those that add to `plan`, and have the text `containing` in name, title or task.
    """
    values = {"after": after, "plan": plan, "text": containing, "limit": None if limit is None else limit + 1}
    rows = tx.execute(PAGE, values).all()
    now = clock.now(tx)
    return [_schedule(row, now) for row in rows[:limit]], rows[limit - 1].name if limit and len(rows) > limit else None


def get(tx: Connection, name: str) -> Schedule:
    """The schedule of this name. Raises UnknownSchedule."""
    row = tx.execute(GET, {"name": name}).one_or_none()
    if row is None:
        raise UnknownSchedule(name)
    return _schedule(row, clock.now(tx))


def _schedule(row: Row[Any], now: datetime) -> Schedule:
    overdue = not row.paused and now - row.next_at >= cron.LATE
    values = {**row._mapping, "missed": Missed(row.missed), "overdue": overdue}
    try:
        return Schedule(**values, ticks=cron.coming(row.cron, row.timezone, now, SHOWN))
    except Invalid as error:  # the zone is known no more: another machine, other time zone data
        return Schedule(**values, problem=str(error))


INSERT = text("""
    insert into relevo.schedule (name, plan_id, cron, timezone, missed, task, args, kwargs, title, kind, declared, next_at)
    values (:name, :plan_id, :cron, :timezone, :missed, :task, cast(:args as jsonb), cast(:kwargs as jsonb), :title, :kind,
        :declared, :next_at)
""")


def create(tx: Connection, new: NewSchedule, *, actor: str) -> Schedule:
    """Create a schedule, whose first tick is the first one after now.

    Raises Invalid naming the field (a `cron` that never comes among them), UnknownPlan, ScheduleExists.
    """
    values = _values(tx, new)
    try:
        with tx.begin_nested():
            tx.execute(INSERT, {**values, "next_at": cron.first(new.cron, new.timezone, clock.now(tx))})
    except IntegrityError:
        raise ScheduleExists(new.name) from None
    audit.record(tx, actor=actor, action="create", plan_id=values["plan_id"], after=_told(new))
    return get(tx, new.name)


def _values(tx: Connection, new: NewSchedule) -> dict[str, Any]:
    """The columns, each checked. Raises Invalid, UnknownPlan."""
    if not plans.NAME.fullmatch(new.name):
        raise Invalid(
            "schedule",
            f"{new.name[:80]!r} is not the name of one; use up to 63 of a-z, 0-9, dot, dash and underscore, a letter or digit first.",
        )
    row = row_of(NewItem(new.task, new.args, new.kwargs, title=new.title, kind=new.kind), lambda: clock.now(tx))
    content = {"task": row.task, "args": row.args, "kwargs": row.kwargs, "title": row.title, "kind": row.kind}
    return {**vars(new), **content, "plan_id": plans.get(tx, new.plan).id}


def _told(new: NewSchedule | Schedule) -> dict[str, Any]:
    told = ("plan", "cron", "timezone", "missed", "task", "args", "kwargs", "title", "kind")
    return {"schedule": new.name, **{name: getattr(new, name) for name in told}}


HOLD = text(f"select {COLUMNS} from {FROM} where s.name = :name for no key update of s")
UPDATE = text("""
    update relevo.schedule set plan_id = :plan_id, cron = :cron, timezone = :timezone, missed = :missed, task = :task,
        args = cast(:args as jsonb), kwargs = cast(:kwargs as jsonb), title = :title, kind = :kind, declared = :declared,
        next_at = coalesce(:next_at, next_at)
    where name = :name
""")


def put(tx: Connection, new: NewSchedule, *, actor: str) -> Schedule:
    """Create the schedule, or give the one of this name what `new` says. It stays paused if it was.

    Another `cron` or `timezone` counts from now; what ticks on the same counts on. An update that changes nothing records
    nothing. Raises as `create`, except that it exists.
    """
    with suppress(ScheduleExists):
        if tx.execute(HOLD, {"name": new.name}).one_or_none() is None:
            return create(tx, new, actor=actor)
    values = _values(tx, new)
    old = lock(tx, new.name)
    now = clock.now(tx)
    next_at = cron.first(new.cron, new.timezone, now)
    same = (old.cron, old.timezone) == (new.cron, new.timezone)
    before, after = _told(old), _told(new)
    if before == after and old.declared == new.declared:
        return old
    tx.execute(UPDATE, {**values, "next_at": None if same else next_at})
    if before != after:
        changed = {name for name in after if before[name] != after[name]} | {"schedule"}
        plan_id = values["plan_id"]
        kept = [{name: told[name] for name in told if name in changed} for told in (before, after)]
        audit.record(tx, actor=actor, action="edit", plan_id=plan_id, before=kept[0], after=kept[1])
    return get(tx, new.name)


def edit(tx: Connection, name: str, change: dict[str, Any], *, actor: str) -> Schedule:
    """Give the schedule of this name the fields of NewSchedule in `change`; its name stays, and so does whether a catalogue has it.

    Another `cron` or `timezone` counts from now. An edit that changes nothing records nothing. Raises UnknownSchedule, UnknownPlan,
    Invalid naming the field.
    """
    held = lock(tx, name)
    fields = ("plan", "cron", "task", "args", "kwargs", "title", "kind", "timezone", "missed")
    for given in change:
        if given not in fields:
            raise Invalid(given, f"is not a field of a schedule that can be edited; those are {', '.join(fields)}.")
    now = {each: getattr(held, each) for each in fields}
    return put(tx, NewSchedule(name=name, declared=held.declared, **{**now, **change}), actor=actor)


def lock(tx: Connection, name: str) -> Schedule:
    """The schedule of this name, which nobody else changes and which does not tick while `tx` lasts. Raises UnknownSchedule."""
    row = tx.execute(HOLD, {"name": name}).one_or_none()
    if row is None:
        raise UnknownSchedule(name)
    return _schedule(row, clock.now(tx))


PAUSE = text("update relevo.schedule set paused = true where name = :name and not paused returning plan_id")
RESUME = text("update relevo.schedule set paused = false, next_at = :next_at where name = :name and paused returning plan_id")
REMOVE = text("delete from relevo.schedule where name = :name returning plan_id")


def pause(tx: Connection, name: str, *, actor: str, reason: str = "") -> Schedule:
    """Let it tick no more until it is resumed; once more changes nothing. Raises UnknownSchedule."""
    plan_id = tx.execute(PAUSE, {"name": name}).scalar_one_or_none()
    if plan_id is not None:
        audit.record(tx, actor=actor, action="pause", plan_id=plan_id, after={"schedule": name}, reason=reason)
    return get(tx, name)


def resume(tx: Connection, name: str, *, actor: str, reason: str = "") -> Schedule:
    """Let it tick again, from now on: ticks of the pause were not missed. Raises UnknownSchedule, Invalid if it cannot tick."""
    held = lock(tx, name)
    next_at = cron.first(held.cron, held.timezone, clock.now(tx))
    plan_id = tx.execute(RESUME, {"name": name, "next_at": next_at}).scalar_one_or_none()
    if plan_id is not None:
        audit.record(tx, actor=actor, action="resume", plan_id=plan_id, after={"schedule": name}, reason=reason)
    return get(tx, name)


def remove(tx: Connection, name: str, *, actor: str, reason: str = "") -> Schedule:
    """Remove it; the items it added stay. What it was. Raises UnknownSchedule."""
    held = lock(tx, name)
    plan_id = tx.execute(REMOVE, {"name": name}).scalar_one()
    audit.record(tx, actor=actor, action="remove", plan_id=plan_id, before=_told(held), reason=reason)
    return replace(held, ticks=())
