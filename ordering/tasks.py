"""Which tasks workers offer, and what each says about queue, plan, tries and interruption."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, text

from ordering.errors import UnknownTask
from ordering.model import OnInterrupt

NO_LIMIT = 2**31 - 1  # tries of a task that is tried again for ever


@dataclass(frozen=True)
class TaskInfo:
    """A task as its worker declares it; None leaves the choice to the item's plan. `max_attempts` counts tries, up to NO_LIMIT."""

    name: str
    queue: str
    plan: str | None = None
    on_interrupt: OnInterrupt | None = None
    max_attempts: int | None = None
    batch: bool = False
    batch_size: int | None = None


REGISTER = text("""
    insert into relevo.task (name, queue, plan, on_interrupt, max_attempts, batch, batch_size)
    values (:name, :queue, :plan, :on_interrupt, :max_attempts, :batch, :batch_size)
    on conflict (name) do update set queue = excluded.queue, plan = excluded.plan, on_interrupt = excluded.on_interrupt,
        max_attempts = excluded.max_attempts, batch = excluded.batch, batch_size = excluded.batch_size, registered_at = now()
    where (task.queue, task.plan, task.on_interrupt, task.max_attempts, task.batch, task.batch_size) is distinct from
        (excluded.queue, excluded.plan, excluded.on_interrupt, excluded.max_attempts, excluded.batch, excluded.batch_size)
""")


def register(tx: Connection, offered: Iterable[TaskInfo]) -> None:
    """Add and update the offered tasks; none is removed, since another worker may offer it."""
    # In name order, so that two workers starting at once cannot deadlock.
    for info in sorted(offered, key=lambda info: info.name):
        tx.execute(REGISTER, vars(info))


KNOWN = text("select name from relevo.task order by name")


def names(tx: Connection) -> list[str]:
    """Every task that a worker has ever offered, by name."""
    return list(tx.execute(KNOWN).scalars())


def require(tx: Connection, name: str) -> None:
    """Raise UnknownTask, naming the known ones, if no worker has ever offered a task of this name."""
    known = names(tx)
    if name not in known:
        raise UnknownTask(name, known)


@dataclass(frozen=True)
class TaskView(TaskInfo):
    """A task as workers offered it, and when that changed last."""

    registered_at: datetime | None = None


OFFERED = text("select name, queue, plan, on_interrupt, max_attempts, batch, batch_size, registered_at from relevo.task order by name")


def offered(tx: Connection) -> list[TaskView]:
    """Every task that a worker has ever offered, by name."""
    rows = tx.execute(OFFERED)
    return [TaskView(**{**row._mapping, "on_interrupt": OnInterrupt(row.on_interrupt) if row.on_interrupt else None}) for row in rows]
