"""A schedule's item by hand: one more, now, beside its ticks; and the item that its latest tick made."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, text

from ordering import add, clock
from ordering.add import Added
from ordering.lines import LINE, ItemLine
from ordering.model import NewItem, State
from ordering.schedule import Schedule


def add_now(tx: Connection, found: Schedule, *, actor: str) -> Added:
    """Add the item that a tick of the schedule, as it was `found`, would, at the end of its plan; its ticks come as before."""
    # A tick's key has whole seconds, so this one is never taken for a tick's.
    key = f"schedule {found.name} {clock.now(tx):%Y-%m-%dT%H:%M:%S.%fZ}"
    new = NewItem(found.task, found.args, found.kwargs, title=found.title or found.name, kind=found.kind, key=key)
    return add.add(tx, found.plan, new, actor=actor)


LAST = text(f"""
    select s.name as schedule, item.* from relevo.schedule s cross join lateral (
        select {LINE} where i.plan_id = s.plan_id and i.key = 'schedule ' || s.name || ' '
            || to_char(s.last_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    ) item where s.name = any(:names) and s.last_at is not null
""")


def last_items(tx: Connection, names: Iterable[str]) -> dict[str, ItemLine]:
    """The item of the latest tick of each of the schedules `names`, by the schedule's name; one that was pruned is missing."""
    found = {}
    for row in tx.execute(LAST, {"names": list(names)}):
        values = {**row._mapping, "state": State(row.state)}
        name = values.pop("schedule")
        found[name] = ItemLine(**values)
    return found
