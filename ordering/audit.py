"""The trail: every change by a person, and every event that a person must be able to find later."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, text

from ordering.errors import Invalid
from ordering.text import checked, storable, storable_json

RECORD = text("""
    insert into relevo.event (actor, action, plan_id, item_id, before, after, reason)
    values (:actor, :action, :plan_id, :item_id, cast(:before as jsonb), cast(:after as jsonb), :reason)
""")


def record(
    tx: Connection,
    *,
    actor: str,
    action: str,
    plan_id: int | None = None,
    item_id: int | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    reason: str = "",
) -> None:
    """Write one line of the trail: who (`actor`), what (`action`, a verb), to which plan or item, before, after and why.

    Raises Invalid if `actor` is empty or cannot be stored. Other text is made storable.
    """
    if not actor.strip():
        raise Invalid("actor", "is empty; say who does this.")
    tx.execute(
        RECORD,
        {
            "actor": checked("actor", actor, 200),
            "action": action,
            "plan_id": plan_id,
            "item_id": item_id,
            "before": None if before is None else json.dumps(storable_json(before), default=str),
            "after": None if after is None else json.dumps(storable_json(after), default=str),
            "reason": storable(reason),
        },
    )
