"""Repair-all: put the repair of everything unresolved at the front of the line, decide it, and let the plan go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, text

from app.catalogue import CataloguePlan, Work
from app.known_tasks import require
from ordering import add, decision, move, plans
from ordering.errors import Invalid, UnknownPlan
from ordering.items import TITLE_LIMIT
from ordering.model import First, NewItem


@dataclass(frozen=True)
class Repaired:
    """An unresolved item and the item that mends it: its repair, or itself again."""

    item: int
    by: int


@dataclass(frozen=True)
class AllRepaired:
    """What repair-all did, in the order in which it will run; `run` is None where nothing was started: on a healthy plan, where nothing
    changed, and while something else is unresolved."""

    repaired: Sequence[Repaired]
    run: plans.Run | None


# A repair that failed itself stands where the entry stands that it was to repair.
UNRESOLVED = text("""
    select i.id, i.entry, coalesce(i.entry, mended.entry) as place, i.title
    from relevo.item i left join relevo.item mended on mended.id = i.repairs
    where i.plan_id = :plan_id and i.state in ('failed', 'interrupted') order by i.position, i.id
""")


def repair_all(tx: Connection, name: str, plan: CataloguePlan | None, keys: Sequence[str] = (), *, actor: str) -> AllRepaired:
    """Repair whatever is failed or interrupted in the plan `name`, in the preset order of `plan` (its catalogue, if it has one).

    With `keys`, only what belongs to these entries, in this order. An entry's repair is added at the front and the failed item
    resolved with a note that names it; what has no repair is retried, at the front too. Then the plan is started, unless something
    is unresolved that was not named. A plan that was never created is healthy if the catalogue has it.

    Raises UnknownPlan; Invalid for an unknown key; UnknownTask if nobody offers a repair's task; MayStillRun while the process of
    an interrupted item may live, since its repair would meet it. Nothing is changed then.
    """
    try:
        held = plans.lock_by_name(tx, name)
    except UnknownPlan:
        if plan is None:
            raise
        return AllRepaired([], None)
    entries = {entry.key: entry for entry in plan.entries} if plan else {}
    found = tx.execute(UNRESOLVED, {"plan_id": held.id}).all()
    if not found:
        return AllRepaired([], None)
    unknown = next((key for key in keys if key not in entries), None)
    if unknown is not None:
        raise Invalid("entries", f"the catalogue has no entry {unknown[:80]!r} of plan {name!r}.")
    places = {key: place for place, key in enumerate(keys or entries)}
    everything = len(found)
    found = [row for row in found if not keys or row.place in places]
    found = sorted(found, key=lambda row: places.get(row.place, len(places)))
    repairs = {row.id: entries[row.entry].repair if row.entry in entries else None for row in found}
    require(tx, (repair.task for repair in repairs.values() if repair is not None))
    decision.refuse_if_it_may_run(tx, [row.id for row in found])
    # Each goes to the very front, so the one that is to run last is put there first.
    repaired = [Repaired(row.id, _repair(tx, held.name, row, repairs[row.id], actor=actor)) for row in reversed(found)]
    run = plans.start(tx, held.name, actor=actor) if repaired and len(found) == everything else None
    return AllRepaired(repaired[::-1], run)


def _repair(tx: Connection, plan: str, row: Row[Any], repair: Work | None, *, actor: str) -> int:
    """Put what mends the item at the front, decide the item, and return the id of what mends it."""
    if repair is None:
        decision.retry(tx, row.id, actor=actor, note="repair-all")
        move.move(tx, row.id, First(), actor=actor)
        return int(row.id)
    title = f"Repair: {row.title or row.entry}"[:TITLE_LIMIT]
    new = NewItem(repair.task, args=repair.args, kwargs=repair.kwargs, title=title, kind="repair", repairs=row.id)
    added = add.add(tx, plan, new, actor=actor, to=First())
    decision.resolve(tx, row.id, actor=actor, note=f"repair added as item {added.id}")
    return added.id
