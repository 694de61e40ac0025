"""Subscriptions: which task hears which facts, and in which stream. Start-up adds and updates; only `unsubscribe` removes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from ordering import audit, plans
from ordering.errors import Invalid, NotAStream, UnknownSubscription
from ordering.facts import check_type
from ordering.items import TASK_LIMIT
from ordering.text import visible


@dataclass(frozen=True, order=True)
class Subscription:
    """`task` hears the facts of this `type`, each as an item of the stream `plan`."""

    type: str
    task: str
    plan: str = plans.DEFAULT_STREAM


BEFORE = text("""
    select p.name from relevo.subscription s join relevo.plan p on p.id = s.plan_id where s.type = :type and s.task = :task
""")
# A task hears a type once: said again it is the same subscription, with another plan it moves there.
SUBSCRIBE = text("""
    insert into relevo.subscription (type, task, plan_id) values (:type, :task, :plan_id)
    on conflict (type, task) do update set plan_id = excluded.plan_id where subscription.plan_id <> excluded.plan_id
    returning id
""")


def subscribe(tx: Connection, wanted: Subscription, *, actor: str) -> bool:
    """Add or update a subscription, and create its plan as a stream if there is none; whether anything changed.

    Facts emitted from the commit on are heard; items that earlier ones became stay where they are. Raises NotAStream if the plan is a
    serial one, Invalid naming the field.
    """
    check_type(f"{wanted.task}: on", wanted.type)
    if not visible("task", wanted.task, TASK_LIMIT):
        raise Invalid("task", "is empty; name the task that hears the fact.")
    plan = plans.ensure_stream(tx, wanted.plan, actor=actor)
    if plan.serial:
        raise NotAStream(plan.name, wanted.task, wanted.type)
    row = {"type": wanted.type, "task": wanted.task}
    before = tx.execute(BEFORE, row).scalar_one_or_none()
    if tx.execute(SUBSCRIBE, {**row, "plan_id": plan.id}).first() is None:
        return False
    was = None if before is None else {"plan": before}
    audit.record(tx, actor=actor, action="subscribe", plan_id=plan.id, before=was, after={**row, "plan": plan.name})
    return True


def subscribe_all(tx: Connection, wanted: Iterable[Subscription], *, actor: str) -> None:
    """`subscribe` to each, all or none; none is removed, since another worker may want it."""
    ordered = sorted(set(wanted))
    # Plans first and each in name order, so that workers that start at once cannot deadlock.
    for plan in sorted({each.plan for each in ordered}):
        plans.ensure_stream(tx, plan, actor=actor)
    for each in ordered:
        subscribe(tx, each, actor=actor)


UNSUBSCRIBE = text("""
    delete from relevo.subscription s using relevo.plan p where p.id = s.plan_id and s.type = :type and s.task = :task
    returning p.id, p.name
""")
TASKS = text("select task from relevo.subscription where type = :type order by task limit 20")


def unsubscribe(tx: Connection, type: str, task: str, *, actor: str, reason: str = "") -> Subscription:
    """Remove a subscription; what it was. Items that facts have become already stay. Raises UnknownSubscription, Invalid."""
    check_type("type", type)
    row = {"type": type, "task": visible("task", task, TASK_LIMIT)}
    removed = tx.execute(UNSUBSCRIBE, row).one_or_none()
    if removed is None:
        raise UnknownSubscription(type, task, list(tx.execute(TASKS, {"type": type}).scalars()))
    audit.record(tx, actor=actor, action="unsubscribe", plan_id=removed.id, before={**row, "plan": removed.name}, reason=reason)
    return Subscription(type, task, removed.name)


@dataclass(frozen=True)
class SubscriptionView:
    """A subscription with what its facts have become and is not settled yet; `last` is the latest fact of its type."""

    type: str
    task: str
    plan: str
    created_at: datetime
    waiting: int
    out: int
    unresolved: int
    last: datetime | None


ALL = text("""
    with unsettled as (
        select f.type, i.task, count(*) filter (where i.state in ('waiting', 'postponed')) as waiting,
            count(*) filter (where i.state = 'dispatched') as out,
            count(*) filter (where i.state in ('failed', 'interrupted')) as unresolved
        from relevo.item i join relevo.fact f on f.id = i.fact_id where i.settled_at is null group by f.type, i.task
    )
    select s.type, s.task, p.name as plan, s.created_at, coalesce(u.waiting, 0) as waiting, coalesce(u.out, 0) as out,
        coalesce(u.unresolved, 0) as unresolved, (select f.at from relevo.fact f where f.type = s.type order by f.id desc limit 1) as last
    from relevo.subscription s join relevo.plan p on p.id = s.plan_id
    left join unsettled u on u.type = s.type and u.task = s.task order by s.type, s.task
""")


def subscriptions(tx: Connection) -> list[SubscriptionView]:
    """Every subscription, by type and task."""
    return [SubscriptionView(**row._mapping) for row in tx.execute(ALL)]
