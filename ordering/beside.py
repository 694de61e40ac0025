"""Which waiting items stand next to an item in the line that people see."""

from __future__ import annotations

from sqlalchemy import Connection, text

NEXT = text("""
    select id from relevo.item where plan_id = :plan_id and state = 'waiting' and id <> :but
        and position > (select position from relevo.item where id = :anchor) order by position, id limit 1
""")
PREVIOUS = text("""
    select id from relevo.item where plan_id = :plan_id and state = 'waiting' and id <> :but
        and position < (select position from relevo.item where id = :anchor) order by position desc, id desc limit 1
""")


def beside(tx: Connection, plan_id: int, item_id: int) -> dict[str, int | None]:
    """The ids of the waiting items that the item stands `after` and `before`, None where there is none; for the trail."""
    where = {"plan_id": plan_id, "but": item_id, "anchor": item_id}
    return {"after": tx.execute(PREVIOUS, where).scalar_one_or_none(), "before": tx.execute(NEXT, where).scalar_one_or_none()}
