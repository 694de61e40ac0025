"""Celery's own calls, `.delay()` and `.apply_async()`, as adds: nothing runs outside a plan."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from celery.result import AsyncResult
from sqlalchemy import Connection

from ordering import add as adding
from ordering import db, plans
from ordering.errors import Invalid, RelevoError
from ordering.items import FARTHEST
from ordering.model import NewItem
from ordering.plans import DEFAULT_STREAM
from workers import database

if TYPE_CHECKING:
    from workers.task import PlanTask

ACCEPTED = {"countdown", "eta", "task_id", "plan", "title", "kind", "key"}
# What Celery passes by itself, with no wish behind it.
HARMLESS = {"producer", "shadow", "root_id", "parent_id", "ignore_result", "add_to_parent"}
INSTEAD = {
    "link": "add the next item from the task's own body, or put both into one serial plan",
    "link_error": "a failed item waits for a decision; nothing else is called",
    "chain": "put the tasks into one serial plan, in their order",
    "chord": "add the last item from the body that ends last",
    "group_id": "add one item per task with .delay()",
    "queue": "say queue= where the task is declared",
    "routing_key": "say queue= where the task is declared",
    "exchange": "say queue= where the task is declared",
    "priority": "move the item in its plan",
    "time_limit": "say time_limit= where the task is declared",
    "soft_time_limit": "say soft_time_limit= where the task is declared",
    "expires": "cancel the item, or give the task a precheck",
}


class NotSupported(RelevoError):
    """A call of Celery's that would run work outside a plan, or promise what the plan decides."""


def refuse_options(call: str, options: dict[str, Any]) -> None:
    """Raise NotSupported, saying what to do instead, for an option that is set and has no meaning in a plan."""
    for name, value in options.items():
        if value is None or value == [] or name in ACCEPTED or name in HARMLESS:
            continue
        hint = INSTEAD.get(name, "leave it out")
        raise NotSupported(f"{call}: {name}= has no meaning here; {hint}.")


def add(task: PlanTask, args: Any, kwargs: Any, options: dict[str, Any]) -> AsyncResult:
    """Add an item for `task` and return a result whose id is the item's; `task_id` is its idempotency key.

    Raises NotSupported, or what ordering.add.add raises.
    """
    from workers.body import to_json

    refuse_options(f"{task.name}.apply_async", options)
    key = options.get("key") or options.get("task_id")
    new = NewItem(
        task=task.name,
        args=to_json("args", list(args or [])),
        kwargs=to_json("kwargs", dict(kwargs or {})),
        title=options.get("title") or "",
        kind=options.get("kind") or "",
        key=key,
        not_before=_not_before(options),
        delay=_delay(options),
    )
    plan = options.get("plan") or task.plan or DEFAULT_STREAM
    with db.reachable():
        added = db.transact(database.engine(), lambda tx: _add(tx, plan, new))
    return task.AsyncResult(str(added.id))


def _add(tx: Connection, plan: str, new: NewItem) -> adding.Added:
    if plan == DEFAULT_STREAM:
        plans.ensure_stream(tx, plan, actor="delay")
    return adding.add(tx, plan, new, actor="delay")


def _delay(options: dict[str, Any]) -> timedelta | None:
    countdown = options.get("countdown")
    return None if countdown is None else seconds_of(countdown)


def seconds_of(countdown: Any) -> timedelta:
    """A countdown as Celery takes it, in seconds: a negative one is none. Raises Invalid."""
    if isinstance(countdown, bool) or not isinstance(countdown, (int, float)) or math.isnan(countdown):
        raise Invalid("countdown", f"{countdown!r} is not a number of seconds.")
    try:
        return max(timedelta(0), timedelta(seconds=countdown))
    except OverflowError:
        return timedelta.max if countdown > 0 else timedelta(0)


def _not_before(options: dict[str, Any]) -> datetime | None:
    eta = options.get("eta")
    if eta is None or options.get("countdown") is not None:  # Celery takes the countdown where both are given
        return None
    when = datetime.fromisoformat(eta) if isinstance(eta, str) else eta
    return when if when.tzinfo else when.replace(tzinfo=UTC)


__all__ = ["FARTHEST", "NotSupported", "add", "refuse_options"]
