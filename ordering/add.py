"""Add: one item, or many by COPY. The same idempotency key and content give the same item; another content is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import islice

import psycopg
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from ordering import audit, clock, place, plans
from ordering.errors import EntryOut, Invalid, KeyConflict
from ordering.model import Last, NewItem, Place, Plan
from ordering.row import Row, row_of

CHUNK = 5_000  # items of a bulk add that are in memory at a time


COLUMNS = ", ".join(Row._fields)
INSERT = text(f"""
    insert into relevo.item (plan_id, position, {COLUMNS})
    values (:plan_id, :position, :task, cast(:args as jsonb), cast(:kwargs as jsonb), :title, :kind, :key, :digest,
        :entry, :repairs, :not_before, :on_interrupt, :max_attempts)
    returning id
""")


@dataclass(frozen=True, slots=True)
class Added:
    """The item's id, and whether this call made it (False: its key was known)."""

    id: int
    new: bool


def add(tx: Connection, plan: str, new: NewItem, *, actor: str, to: Place = Last()) -> Added:  # noqa: B008 - frozen
    """Add one item to the plan named `plan`, at the end unless `to` says where; an idle autostart plan is started.

    Raises UnknownPlan, Invalid naming the field, NotInLine, KeyConflict, EntryOut if the catalogue entry is not settled yet.
    """
    held = plans.get(tx, plan)
    if held.serial or new.key is not None or not isinstance(to, Last):  # else nobody else's add is of any concern
        held = plans.lock_by_name(tx, plan)
    row = row_of(new, lambda: clock.now(tx))
    for item_id in _known(tx, held, [row]).values():
        return Added(item_id, new=False)
    _refuse(tx, held, [row])
    chosen = place.positions(tx, held, to, 1)[0]
    item_id = tx.execute(INSERT, {"plan_id": held.id, "position": chosen, **row._asdict()}).scalar_one()
    audit.record(tx, actor=actor, action="add", plan_id=held.id, item_id=item_id, after={"title": new.title, "task": new.task})
    plans.autostart(tx, held, actor=actor)
    plans.wake_if_idle(tx, held)
    return Added(item_id, new=True)


def add_many(tx: Connection, plan: str, new: Iterable[NewItem], *, actor: str, to: Place = Last()) -> list[Added]:  # noqa: B008
    """Add many items in their order by COPY, all or none; what `add` does and raises, with one event for all of them.

    At the end of the line `new` is read as it comes, a chunk at a time; elsewhere it is read whole first. It must not use `tx`.
    """
    held = plans.lock_by_name(tx, plan)
    places: Iterator[Decimal] | None = None
    if not isinstance(to, Last):
        new = list(new)  # they share one gap, so their number must be known
        places = _places(tx, held, to, len(new))
    added: list[Added] = []
    begun: int | None = None
    with tx.begin_nested(), ExitStack() as copying:
        for chunk in _chunks(new, clock.now(tx)):
            copying.close()  # only now, so that Postgres stored the chunk before while this one was read and checked
            known = _known(tx, held, chunk, begun=begun)
            fresh = [row for row in chunk if row.key not in known] if known else chunk
            if fresh:
                _refuse(tx, held, fresh)
                chosen = list(islice(places, len(fresh))) if places else place.positions(tx, held, Last(), len(fresh))
                ids = tx.execute(NEXT_IDS, {"count": len(fresh)}).scalars().all()
                begun = begun or ids[0]
                write = copying.enter_context(_copy(tx)).write_row
                for item_id, position, row in zip(ids, chosen, fresh, strict=True):
                    write((item_id, held.id, position, *row))
            made = iter(ids if fresh else ())
            added += [Added(known[row.key], False) if row.key in known else Added(next(made), True) for row in chunk]
        copying.close()
        if begun is not None:
            count = sum(each.new for each in added)
            audit.record(tx, actor=actor, action="add", plan_id=held.id, after={"items": count, "first": begun})
            plans.autostart(tx, held, actor=actor)
            plans.wake(tx, held.id)
    return added


def _places(tx: Connection, plan: Plan, to: Place, count: int) -> Iterator[Decimal]:
    # Lazily: a repeated call, all of whose keys are known, needs no place, and its neighbour may be out by now.
    yield from place.positions(tx, plan, to, count)


def _chunks(new: Iterable[NewItem], now: datetime) -> Iterator[list[Row]]:
    """Rows by the thousand. A key or an entry that comes again begins a new chunk, where it will find the first one stored."""
    chunk, keys, entries = list[Row](), set[str | None](), set[str | None]()
    for each in new:
        row = row_of(each, lambda: now)
        again = (row.key is not None and row.key in keys) or (row.entry is not None and row.entry in entries)
        if again or len(chunk) == CHUNK:
            yield chunk
            chunk, keys, entries = [], set(), set()
        chunk.append(row)
        keys.add(row.key)
        entries.add(row.entry)
    if chunk:
        yield chunk


NEXT_IDS = text("select nextval('relevo.item_id_seq') from generate_series(1, :count)")
COPY = f"copy relevo.item (id, plan_id, position, {COLUMNS}) from stdin"


@contextmanager
def _copy(tx: Connection) -> Iterator[psycopg.Copy]:
    try:
        with closing(tx.connection.cursor()) as cursor, cursor.copy(COPY) as copy:
            yield copy
    except psycopg.Error as error:
        # The driver's own cursor was used, so its errors are turned here into those that `db` knows how to tell apart.
        gone = bool(getattr(tx.connection.dbapi_connection, "closed", True))
        raise DBAPIError.instance(COPY, None, error, psycopg.Error, connection_invalidated=gone, dialect=tx.dialect) from error


SAME_KEYS = text("select key, id, digest from relevo.item where plan_id = :plan_id and key = any(:keys)")


def _known(tx: Connection, plan: Plan, rows: Sequence[Row], *, begun: int | None = None) -> dict[str | None, int]:
    """The ids of items that have the rows' keys already; those from `begun` on were made by this very call.

    Raises KeyConflict if one has another content.
    """
    digests = {row.key: row.digest for row in rows if row.key is not None}
    if not digests:
        return {}
    found = tx.execute(SAME_KEYS, {"plan_id": plan.id, "keys": list(digests)}).all()
    for row in found:
        if row.digest != digests[row.key]:
            if begun is not None and row.id >= begun:
                raise Invalid("key", f"{row.key!r} stands twice in this call with different content; use a key per item.")
            raise KeyConflict(row.key, row.id)
    return {row.key: row.id for row in found}


OPEN_ENTRY = text("select entry from relevo.item where plan_id = :plan_id and entry = any(:entries) and settled_at is null limit 1")
NOT_THERE = text("select each from unnest(cast(:ids as bigint[])) each where not exists (select from relevo.item where id = each) limit 1")


def _refuse(tx: Connection, plan: Plan, rows: Sequence[Row]) -> None:
    """Raise EntryOut for an entry that is out already, Invalid for a repair of an item that is not there."""
    if entries := [row.entry for row in rows if row.entry is not None]:
        entry = tx.execute(OPEN_ENTRY, {"plan_id": plan.id, "entries": entries}).scalar_one_or_none()
        if entry is not None:
            raise EntryOut(entry)
    if repaired := [row.repairs for row in rows if row.repairs is not None]:
        missing = tx.execute(NOT_THERE, {"ids": repaired}).scalar_one_or_none()
        if missing is not None:
            raise Invalid("repairs", f"there is no item {missing}.")
