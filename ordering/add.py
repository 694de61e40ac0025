"""Add: one item, or many by COPY. The same idempotency key and content give the same item; another content is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from ordering import audit, items, place, plans
from ordering.db import sqlstate
from ordering.errors import EntryOut, Invalid, KeyConflict
from ordering.model import Last, NewItem, Place, Plan
from ordering.text import ARGS_LIMIT, checked, checked_json, visible

KEY_LIMIT = 500
COLUMNS = (
    "plan_id", "position", "task", "args", "kwargs", "title", "kind", "key", "digest",
    "entry", "repairs", "not_before", "on_interrupt", "max_attempts",
)  # fmt: skip
INSERT = text(f"""
    insert into relevo.item ({", ".join(COLUMNS)})
    values (:plan_id, :position, :task, cast(:args as jsonb), cast(:kwargs as jsonb), :title, :kind, :key, :digest,
        :entry, :repairs, :not_before, :on_interrupt, :max_attempts)
    returning id
""")


@dataclass(frozen=True)
class Added:
    """The item's id, and whether this call made it (False: its key was known)."""

    id: int
    new: bool


def add(tx: Connection, plan: str, new: NewItem, *, actor: str, to: Place = Last()) -> Added:  # noqa: B008 - frozen
    """Add one item to the plan named `plan`, at the end unless `to` says where; an idle autostart plan is started.

    Raises UnknownPlan, Invalid naming the field, NotInLine, KeyConflict, EntryOut if the catalogue entry is not settled yet.
    """
    held = plans.lock_by_name(tx, plan)
    row = _row(tx, held, new)
    known = _known(tx, held, [row])
    if known:
        return Added(known[str(row["key"])], new=False)
    row["position"] = place.positions(tx, held.id, to, 1)[0]
    try:
        with tx.begin_nested():
            item_id = tx.execute(INSERT, row).scalar_one()
    except IntegrityError as error:
        if sqlstate(error) == "23505" and new.entry is not None:
            raise EntryOut(new.entry) from None
        raise
    audit.record(tx, actor=actor, action="add", plan_id=held.id, item_id=item_id, after={"title": new.title, "task": new.task})
    plans.autostart(tx, held, actor=actor)
    plans.wake(tx, held.id)
    return Added(item_id, new=True)


def add_many(tx: Connection, plan: str, new: Iterable[NewItem], *, actor: str, to: Place = Last()) -> list[Added]:  # noqa: B008
    """Add many items in their order by COPY, all or none; what `add` does and raises, with one event for all of them."""
    held = plans.lock_by_name(tx, plan)
    rows = [_row(tx, held, each) for each in new]
    known = _known(tx, held, [row for row in rows if row["key"] is not None])
    fresh, seen = [], dict[str, str]()
    for row in rows:
        key = row["key"]
        if key is not None:
            if key in seen and seen[key] != row["digest"]:
                raise Invalid("key", f"{key!r} stands twice in this call with different content; use a key per item.")
            if key in known or key in seen:
                continue
            seen[key] = row["digest"]
        fresh.append(row)
    for row, chosen in zip(fresh, place.positions(tx, held.id, to, len(fresh)) if fresh else [], strict=True):
        row["position"] = chosen
    ids = _copy(tx, fresh)
    made = {row["key"]: item_id for row, item_id in zip(fresh, ids, strict=True) if row["key"] is not None}
    if fresh:
        audit.record(tx, actor=actor, action="add", plan_id=held.id, after={"items": len(ids), "first": ids[0], "last": ids[-1]})
        plans.autostart(tx, held, actor=actor)
        plans.wake(tx, held.id)
    rest, given, added = iter(ids), set[str](), list[Added]()
    for row in rows:
        key = row["key"]
        if key is not None and (key in known or key in given):
            added.append(Added(known[key] if key in known else made[key], new=False))
        else:
            added.append(Added(next(rest), new=True))
            if key is not None:
                given.add(key)
    return added


NEXT_IDS = text("""
    select nextval(pg_get_serial_sequence('relevo.item', 'id')) from generate_series(1, :count)
""")


def _copy(tx: Connection, rows: Sequence[dict[str, Any]]) -> list[int]:
    if not rows:
        return []
    ids = list(tx.execute(NEXT_IDS, {"count": len(rows)}).scalars())
    cursor = tx.connection.cursor()
    try:
        with tx.begin_nested(), cursor.copy(f"copy relevo.item (id, {', '.join(COLUMNS)}) from stdin") as copy:
            for item_id, row in zip(ids, rows, strict=True):
                copy.write_row((item_id, *(row[column] for column in COLUMNS)))
    finally:
        cursor.close()
    return ids


SAME_KEYS = text("select key, id, digest from relevo.item where plan_id = :plan_id and key = any(:keys)")


def _known(tx: Connection, plan: Plan, rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """The ids of items that have the rows' keys already. Raises KeyConflict if one has another content."""
    digests = {row["key"]: row["digest"] for row in rows if row["key"] is not None}
    if not digests:
        return {}
    found = tx.execute(SAME_KEYS, {"plan_id": plan.id, "keys": list(digests)}).all()
    for row in found:
        if row.digest != digests[row.key]:
            raise KeyConflict(row.key, row.id)
    return {row.key: row.id for row in found}


def _row(tx: Connection, plan: Plan, new: NewItem) -> dict[str, Any]:
    if not isinstance(new.args, list):
        raise Invalid("args", "must be a list of positional arguments.")
    if not isinstance(new.kwargs, dict):
        raise Invalid("args", "must be an object of named arguments.")
    if new.max_attempts is not None and not 1 <= new.max_attempts <= 1000:
        raise Invalid("max_attempts", f"{new.max_attempts} is out of range; use 1 to 1000.")
    if not new.task:
        raise Invalid("task", "is empty; name a task, for example shell.")
    row: dict[str, Any] = {
        "plan_id": plan.id,
        "position": None,
        "task": checked("task", new.task, items.TASK_LIMIT),
        "args": checked_json("args", new.args, ARGS_LIMIT),
        "kwargs": checked_json("args", new.kwargs, ARGS_LIMIT),
        "title": visible("title", new.title, items.TITLE_LIMIT),
        "kind": visible("kind", new.kind, items.KIND_LIMIT),
        "key": None if new.key is None else checked("key", new.key, KEY_LIMIT),
        "digest": None,
        "entry": None if new.entry is None else checked("entry", new.entry, KEY_LIMIT),
        "repairs": new.repairs,
        "not_before": None if new.not_before is None else items.checked_time(tx, "not_before", new.not_before),
        "on_interrupt": new.on_interrupt,
        "max_attempts": new.max_attempts,
    }
    if new.key == "":
        raise Invalid("key", "is empty; leave it out or write something.")
    if new.key is not None:
        content = [row[name] for name in ("task", "title", "kind", "entry", "max_attempts")]
        content += [json.dumps(value, sort_keys=True) for value in (new.args, new.kwargs)]
        content += [str(new.on_interrupt), str(new.not_before)]
        row["digest"] = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return row
