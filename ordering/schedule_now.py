"""A schedule's item by hand: one more, now, beside its ticks; and the item that its latest tick made."""

from __future__ import annotations

from sqlalchemy import Connection, text

from ordering import add, clock, schedule
from ordering.add import Added
from ordering.lines import LINE, ItemLine
from ordering.model import NewItem, State


def add_now(tx: Connection, name: str, *, actor: str) -> Added:
    """Add the item that the schedule's tick would, at the end of its plan; its ticks come as before, paused or not.

    Raises UnknownSchedule.
    """
    found = schedule.get(tx, name)
    # A tick's key has whole seconds, so this one is never taken for a tick's.
    key = f"schedule {name} {clock.now(tx):%Y-%m-%dT%H:%M:%S.%fZ}"
    new = NewItem(found.task, found.args, found.kwargs, title=found.title or name, kind=found.kind, key=key)
    return add.add(tx, found.plan, new, actor=actor)


LAST = text(f"""
    select s.name as schedule, item.* from relevo.schedule s cross join lateral (
        select {LINE} where i.plan_id = s.plan_id and i.key = 'schedule ' || s.name || ' '
            || to_char(s.last_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
    ) item where s.last_at is not null
""")


def last_items(tx: Connection) -> dict[str, ItemLine]:
    """The item of each schedule's latest tick by the schedule's name; one that was pruned is missing."""
    found = {}
    for row in tx.execute(LAST):
        values = {**row._mapping, "state": State(row.state)}
        name = values.pop("schedule")
        found[name] = ItemLine(**values)
    return found
