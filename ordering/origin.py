"""Read model of where an item came from and what came of it: its fact, its schedule, what it repairs and what repairs it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, text

from ordering.items import STATE, TABLES
from ordering.lines import TEXT_LIMIT
from ordering.model import Item, State

MOST = 20  # repairs that are shown


@dataclass(frozen=True)
class Related:
    """Another item, as a link shows it."""

    id: int
    title: str
    task: str
    state: State


@dataclass(frozen=True)
class Origin:
    """Where an item came from. `fact_type` is the type of its fact; `schedule` names the schedule that added it, there or not."""

    fact: int | None
    fact_type: str | None
    schedule: str | None
    entry: str | None
    repairs: Related | None
    repaired_by: Sequence[Related]


FACT = text("select type from relevo.fact where id = :id")
RELATED = f"select i.id, left(i.title, {TEXT_LIMIT}) as title, i.task, {STATE} as state from {TABLES}"
REPAIRS = text(f"{RELATED} where i.id = :id")
REPAIRED_BY = text(f"{RELATED} where i.repairs = :id order by i.id desc limit {MOST}")


def origin(tx: Connection, item: Item) -> Origin:
    """Where this item came from, and the latest MOST items that were added to repair it."""
    fact_type = None if item.fact is None else tx.execute(FACT, {"id": item.fact}).scalar_one_or_none()
    scheduled = re.fullmatch(r"schedule ([a-z0-9][a-z0-9._-]{0,62}) \d{4}-\d\d-\d\dT[0-9:.]+Z", item.key or "", re.ASCII)
    repaired = [] if item.repairs is None else [_related(row) for row in tx.execute(REPAIRS, {"id": item.repairs})]
    return Origin(
        fact=item.fact,
        fact_type=fact_type,
        schedule=scheduled[1] if scheduled else None,
        entry=item.entry,
        repairs=repaired[0] if repaired else None,
        repaired_by=[_related(row) for row in tx.execute(REPAIRED_BY, {"id": item.id})],
    )


def _related(row: Row[Any]) -> Related:
    return Related(row.id, row.title, row.task, State(row.state))
