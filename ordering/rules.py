"""Read model of what goes for an item: what it says itself, else its task, else its plan, else what goes where nobody says anything."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, text

from ordering import said
from ordering.errors import UnknownItem
from ordering.model import OnInterrupt
from ordering.tasks import NO_LIMIT


@dataclass(frozen=True)
class Rules:
    """`max_attempts` is None where its task is tried for ever; `queue` is None as long as no worker has offered its task."""

    max_attempts: int | None
    on_interrupt: OnInterrupt
    queue: str | None


RULES = text(f"""
    select {said.MAX_ATTEMPTS} as max_attempts, {said.ON_INTERRUPT} as on_interrupt, t.queue
    from relevo.item i join relevo.plan p on p.id = i.plan_id left join relevo.task t on t.name = i.task where i.id = :id
""")


def rules(tx: Connection, item_id: int) -> Rules:
    """What goes for the item with this id. Raises UnknownItem."""
    row = tx.execute(RULES, {"id": item_id}).one_or_none()
    if row is None:
        raise UnknownItem(item_id)
    return Rules(None if row.max_attempts >= NO_LIMIT else row.max_attempts, OnInterrupt(row.on_interrupt), row.queue)
