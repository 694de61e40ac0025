"""Plans and their runs: create, start, pause, and the lock that every change to a line takes first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from ordering import audit
from ordering.errors import Invalid, NotStarted, PlanBlocked, PlanExists, UnknownPlan
from ordering.model import OnFailure, OnInterrupt, Plan
from ordering.rate import checked
from ordering.text import visible

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
TITLE_LIMIT = 500  # characters of a plan's title
WAKE_CHANNEL = "relevo_feed"
KEEP = timedelta(days=30)
DEFAULT_STREAM = "default"
DEFAULT_CONCURRENCY = 4  # of a stream that nobody has created by hand
MOST = 10_000  # dispatches of a stream that may be out

COLUMNS = "id, name, title, concurrency, on_failure, on_interrupt, max_attempts, autostart, keep, rate"
CREATE = text(f"""
    insert into relevo.plan (name, title, concurrency, on_failure, on_interrupt, max_attempts, autostart, stop_grace, keep, rate)
    values (:name, :title, :concurrency, :on_failure, :on_interrupt, :max_attempts, :autostart, :stop_grace, :keep, :rate)
    returning {COLUMNS}
""")
GET = text(f"select {COLUMNS} from relevo.plan where name = :name")
# Rule 1: the lock is a statement of its own, so that the next statement sees what the last holder committed.
LOCK = text(f"select {COLUMNS} from relevo.plan where id = :id for no key update")
LOCK_BY_NAME = text(f"select {COLUMNS} from relevo.plan where name = :name for no key update")
# Where the feeders of a plan with a rate note when the next item is due.
PACE = text("insert into relevo.pace (plan_id) values (:id) on conflict do nothing")
WAKE = text("select pg_notify(:channel, cast(:plan_id as text))")


@dataclass(frozen=True)
class Run:
    """The time from start to drained or paused; `opened` tells whether this call began it."""

    id: int
    on_failure: OnFailure
    opened: bool


def read(row: Any) -> Plan:
    """A Plan from a row of COLUMNS, as a mapping."""
    values = dict(row)
    values["on_failure"] = OnFailure(values["on_failure"])
    values["on_interrupt"] = OnInterrupt(values["on_interrupt"]) if values["on_interrupt"] else None
    return Plan(**values)


def create(
    tx: Connection,
    name: str,
    *,
    actor: str,
    title: str = "",
    concurrency: int = 1,
    on_failure: OnFailure = OnFailure.HALT,
    on_interrupt: OnInterrupt | None = None,
    max_attempts: int | None = None,
    autostart: bool = False,
    stop_grace: timedelta = timedelta(seconds=10),
    keep: timedelta = KEEP,
    rate: Decimal | None = None,
) -> Plan:
    """Create a plan. A stream (`concurrency` > 1) begins its run at once, since streams always run.

    `max_attempts` counts tries; `stop_grace` is how long a stopping worker lets a body go on; `keep` how long what is settled
    stays; `rate` how many items a stream hands out per second.
    Raises PlanExists if the name is taken, Invalid if a value cannot be accepted.
    """
    check_name(name)
    if not 1 <= concurrency <= MOST:
        raise Invalid("concurrency", f"{concurrency} is out of range; 1 is a serial plan, up to {MOST} a stream.")
    check_settings(title=title, max_attempts=max_attempts, stop_grace=stop_grace, keep=keep, rate=rate, serial=concurrency == 1)
    try:
        with tx.begin_nested():
            row = tx.execute(
                CREATE,
                {
                    "name": name,
                    "title": title,
                    "concurrency": concurrency,
                    "on_failure": on_failure,
                    "on_interrupt": on_interrupt,
                    "max_attempts": max_attempts,
                    "autostart": autostart,
                    "stop_grace": stop_grace,
                    "keep": keep,
                    "rate": rate,
                },
            ).one()
    except IntegrityError:
        raise PlanExists(name) from None
    plan = read(row._mapping)
    audit.record(tx, actor=actor, action="create", plan_id=plan.id, after={"name": name, "concurrency": concurrency})
    if rate is not None:
        tx.execute(PACE, {"id": plan.id})
    if not plan.serial:
        open_run(tx, plan, actor=actor, on_failure=plan.on_failure)
    return plan


ENSURE = text(f"""
    insert into relevo.plan (name, title, concurrency) values (:name, :title, :concurrency)
    on conflict (name) do nothing returning {COLUMNS}
""")


def ensure_stream(tx: Connection, name: str, *, actor: str) -> Plan:
    """The plan of this name; if there is none it is created as a stream. Any number of callers at once. Raises Invalid.

    What there is is left as it is, so it may be a serial plan.
    """
    check_name(name)
    found = tx.execute(GET, {"name": name}).one_or_none()
    if found is not None:
        return read(found._mapping)
    title = "Tasks that name no plan" if name == DEFAULT_STREAM else ""
    made = tx.execute(ENSURE, {"name": name, "title": title, "concurrency": DEFAULT_CONCURRENCY}).one_or_none()
    if made is None:
        return get(tx, name)
    plan = read(made._mapping)
    audit.record(tx, actor=actor, action="create", plan_id=plan.id, after={"name": name, "concurrency": plan.concurrency})
    open_run(tx, plan, actor=actor, on_failure=plan.on_failure)
    return plan


def check_name(name: str) -> None:
    """Raise Invalid if `name` cannot be a plan's name."""
    if not NAME.fullmatch(name):
        raise Invalid(
            "plan", f"{name[:80]!r} is not a plan name; use up to 63 of a-z, 0-9, dot, dash and underscore, a letter or digit first."
        )


def check_settings(
    *, title: str, max_attempts: int | None, stop_grace: timedelta, keep: timedelta, rate: Decimal | None, serial: bool
) -> None:
    """Raise Invalid, naming the setting, if one of these cannot be accepted."""
    visible("title", title, TITLE_LIMIT)
    if max_attempts is not None and not 1 <= max_attempts <= 1000:
        raise Invalid("max_attempts", f"{max_attempts} is out of range; use 1 to 1000.")
    if not timedelta(0) <= stop_grace <= timedelta(days=1):
        raise Invalid("stop_grace", "is out of range; use 0 seconds to one day.")
    if not timedelta(seconds=1) <= keep <= timedelta(days=3660):
        raise Invalid("keep", "is out of range; use one second to ten years.")
    if rate is not None:
        if serial:
            raise Invalid("rate", "is for streams; this plan has one item out at a time (concurrency 1).")
        checked(rate)


def get(tx: Connection, name: str) -> Plan:
    """The plan of this name. Raises UnknownPlan."""
    row = tx.execute(GET, {"name": name}).one_or_none()
    if row is None:
        raise UnknownPlan(name)
    return read(row._mapping)


def lock(tx: Connection, plan_id: int) -> Plan:
    """Take the plan's row lock, before anything of its line, run or head is read or changed."""
    return read(tx.execute(LOCK, {"id": plan_id}).mappings().one())


def lock_by_name(tx: Connection, name: str) -> Plan:
    """As `lock`, by name. Raises UnknownPlan."""
    row = tx.execute(LOCK_BY_NAME, {"name": name}).one_or_none()
    if row is None:
        raise UnknownPlan(name)
    return read(row._mapping)


def wake(tx: Connection, plan_id: int) -> None:
    """Tell the feeders, at commit, that this plan may have something to feed. A hint: losing it costs a second."""
    tx.execute(WAKE, {"channel": WAKE_CHANNEL, "plan_id": plan_id})


WAKE_IF_IDLE = text("""
    select pg_notify(:channel, cast(:plan_id as text))
    where not exists (select from relevo.dispatch d where d.plan_id = :plan_id and d.ended_at is null
        and exists (select from relevo.item i where i.dispatch_id = d.id and i.state in ('dispatched', 'cancelled')))
""")


def wake_if_idle(tx: Connection, plan: Plan) -> None:
    """As `wake`, for an add: a stream that has something out is fed when that ends, and a notification costs each commit a lock."""
    if plan.serial:
        wake(tx, plan.id)
    else:
        tx.execute(WAKE_IF_IDLE, {"channel": WAKE_CHANNEL, "plan_id": plan.id})


UNRESOLVED = text("""
    select id, coalesce(nullif(title, ''), task), state from relevo.item
    where plan_id = :plan_id and state in ('failed', 'interrupted') order by position, id limit 20
""")
OPEN_RUN = text("""
    insert into relevo.run (plan_id, on_failure, started_by) values (:plan_id, :on_failure, :actor)
    on conflict (plan_id) where ended_at is null do nothing returning id
""")
CURRENT_RUN = text("select id, on_failure from relevo.run where plan_id = :plan_id and ended_at is null")
SET_POLICY = text("update relevo.run set on_failure = :on_failure where id = :id")


def open_run(tx: Connection, plan: Plan, *, actor: str, on_failure: OnFailure | None) -> Run:
    """Begin a run of the locked `plan`, or join the open one and give it the policy `on_failure` if that is not None."""
    policy = on_failure or plan.on_failure
    run_id = tx.execute(OPEN_RUN, {"plan_id": plan.id, "on_failure": policy, "actor": actor}).scalar_one_or_none()
    if run_id is not None:
        audit.record(tx, actor=actor, action="start", plan_id=plan.id, after={"on_failure": policy})
        return Run(run_id, policy, opened=True)
    current = tx.execute(CURRENT_RUN, {"plan_id": plan.id}).one()
    if on_failure is not None and on_failure != current.on_failure:
        tx.execute(SET_POLICY, {"id": current.id, "on_failure": on_failure})
        audit.record(
            tx,
            actor=actor,
            action="start",
            plan_id=plan.id,
            before={"on_failure": current.on_failure},
            after={"on_failure": on_failure},
        )
        return Run(current.id, on_failure, opened=False)
    return Run(current.id, OnFailure(current.on_failure), opened=False)


def start(tx: Connection, name: str, *, actor: str, on_failure: OnFailure | None = None) -> Run:
    """Begin a run, with the plan's own policy unless `on_failure` is given; on a running plan only the policy changes.

    Raises UnknownPlan; PlanBlocked while a serial plan has any unresolved item (rule 3).
    """
    plan = lock_by_name(tx, name)
    refuse_if_blocked(tx, plan)
    run = open_run(tx, plan, actor=actor, on_failure=on_failure)
    wake(tx, plan.id)
    return run


def refuse_if_blocked(tx: Connection, plan: Plan) -> None:
    """Raise PlanBlocked if the serial `plan` has failed or interrupted items, naming up to 20 of them."""
    if plan.serial:
        unresolved = tx.execute(UNRESOLVED, {"plan_id": plan.id}).all()
        if unresolved:
            raise PlanBlocked(plan.name, [(row[0], row[1], row[2]) for row in unresolved])


END_RUN = text("""
    update relevo.run set ended_at = now(), ended_as = :ended_as
    where plan_id = :plan_id and ended_at is null returning id
""")


def pause(tx: Connection, name: str, *, actor: str, reason: str = "") -> None:
    """End the open run: what is out goes on to its end, nothing more is fed. Raises UnknownPlan, NotStarted."""
    plan = lock_by_name(tx, name)
    if tx.execute(END_RUN, {"plan_id": plan.id, "ended_as": "paused"}).first() is None:
        raise NotStarted(name)
    audit.record(tx, actor=actor, action="pause", plan_id=plan.id, reason=reason)


# Ordered, so that Postgres walks the index. A bare `exists` scans the table where it expects many rows to wait, and that is ten
# million settled ones before the first that does.
FIRST_WAITING = "(select true from relevo.item where plan_id = :plan_id and state = 'waiting' order by position, id limit 1)"
LEFT = text(f"""
    select exists (select from relevo.item where plan_id = :plan_id and at_head) or {FIRST_WAITING} is true
        or (select true from relevo.item where plan_id = :plan_id and state = 'postponed' order by not_before limit 1) is true
""")


def close_if_drained(tx: Connection, plan_id: int) -> bool:
    """End the run of the locked serial plan if nothing is waiting, postponed or out; whether it was ended."""
    if tx.execute(LEFT, {"plan_id": plan_id}).scalar_one():
        return False
    ended = tx.execute(END_RUN, {"plan_id": plan_id, "ended_as": "drained"}).first() is not None
    if ended:
        audit.record(tx, actor="relevo", action="drain", plan_id=plan_id)
    return ended


HAS_WAITING = text(f"select {FIRST_WAITING} is true")


def autostart(tx: Connection, plan: Plan, *, actor: str) -> None:
    """Begin a run of the locked `plan` if it starts by itself, something waits and nothing is unresolved."""
    if not (plan.serial and plan.autostart) or tx.execute(UNRESOLVED, {"plan_id": plan.id}).first() is not None:
        return
    if tx.execute(HAS_WAITING, {"plan_id": plan.id}).scalar_one():
        open_run(tx, plan, actor=actor, on_failure=None)
