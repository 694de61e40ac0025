"""Read model of unsettled items whose bodies have left steps, over all plans: what sleeps until when, runs, waits, needs a person."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, TextClause, text

from ordering.errors import Invalid
from ordering.items import STATE, TABLES
from ordering.lines import TEXT_LIMIT
from ordering.model import State, StepKind

CHOICES = ("asleep", "running", "backing-off", "unresolved")


@dataclass(frozen=True)
class Workflow:
    """An item with steps. `step`, `number` and `kind` are of the last one recorded, `done` counts those that are done.

    `until` is when it goes on by itself, if it does; `since` is when its last step ended or its sleep began.
    """

    id: int
    plan: str
    state: State
    task: str
    title: str
    step: str
    number: int
    kind: StepKind
    done: int
    failures: int
    until: datetime | None
    since: datetime


@dataclass(frozen=True)
class Workflows:
    """One page in its order; `next` is the cursor of the following one, or None at the end."""

    items: Sequence[Workflow]
    next: str | None


# Of what waits, how many items one page looks through for those with steps: about 60 ms. It may then be short and yet not be the last.
SCAN = 20_000
# Each of the four walks an index from its beginning, so that settled items, and what waits without steps, cost little.
WAKING = "i.not_before is not null and i.state in ('waiting', 'postponed')"
OF: dict[str, str] = {
    "asleep": f"{WAKING} and i.state = 'postponed'",
    "running": "i.state = 'dispatched' and d.claimed_at is not null and d.ended_at is null",
    "backing-off": f"{WAKING} and i.state = 'waiting'",
    "unresolved": "i.state in ('failed', 'interrupted')",
}
BY = {"asleep": "i.not_before", "running": "d.claimed_at", "backing-off": "i.not_before", "unresolved": "i.unresolved_at"}


def _look(chosen: str, *, after: bool) -> TextClause:
    # Written anew with and without a cursor, so that each is one range of an index.
    behind = f"and ({BY[chosen]}, i.id) > (cast(:place as timestamptz), :id)" if after else ""
    return text(f"""
        with scanned as materialized (
            select i.id, {BY[chosen]} as place from relevo.item i left join relevo.dispatch d on d.id = i.dispatch_id
            where {OF[chosen]} {behind} order by {BY[chosen]}, i.id limit {SCAN}
        ), found as (
            select scanned.id, scanned.place from scanned cross join lateral (
                select kind from relevo.step s where s.item_id = scanned.id order by number desc limit 1) last
            where {"last.kind = 'sleep'" if chosen == "asleep" else "true"} order by scanned.place, scanned.id limit :limit
        )
        select array(select id from found order by place, id) as ids, (select count(*) from scanned) as scanned, last.place, last.id
        from (select) one left join (select place, id from scanned order by place desc, id desc limit 1) last on true
    """)


def _lines(chosen: str) -> TextClause:
    return text(f"""
        select i.id, p.name as plan, {STATE} as state, i.task, left(i.title, {TEXT_LIMIT}) as title, last.name as step, last.number,
            last.kind, (select count(*) from relevo.step s where s.item_id = i.id and s.done) as done, last.failures,
            case when i.state in ('waiting', 'postponed') then i.not_before end as until,
            case when last.kind = 'sleep' then last.started_at else last.ended_at end as since, {BY[chosen]} as place
        from {TABLES} cross join lateral (
            select number, name, kind, failures, started_at, ended_at from relevo.step s where s.item_id = i.id
            order by number desc limit 1
        ) last
        where i.id = any(:ids) order by {BY[chosen]}, i.id
    """)


def workflows(tx: Connection, chosen: str, *, limit: int, after: str | None = None) -> Workflows:
    """Up to `limit` items with steps: of CHOICES, those asleep and backing off by when they go on, the others the longest first.

    `after` is the cursor of the page before. Raises Invalid naming `state` or `cursor`.
    """
    if chosen not in CHOICES:
        raise Invalid("state", f"{chosen[:40]!r} is none; use one of {', '.join(CHOICES)}.")
    values: dict[str, object] = {"limit": limit + 1}
    if after is not None:
        values["place"], values["id"] = _parsed(after)
    looked = tx.execute(_look(chosen, after=after is not None), values).one()
    rows = tx.execute(_lines(chosen), {"ids": looked.ids[:limit]}).all()
    found = []
    for row in rows:
        fields = {**row._mapping, "state": State(row.state), "kind": StepKind(row.kind)}
        del fields["place"]
        found.append(Workflow(**fields))
    if len(looked.ids) > limit and rows:
        return Workflows(found, _written(rows[-1].place, rows[-1].id))
    return Workflows(found, _written(looked.place, looked.id) if looked.scanned == SCAN else None)


def _written(place: datetime, item_id: int) -> str:
    return f"{place.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}~{item_id}"


def _parsed(cursor: str) -> tuple[datetime, int]:
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})~(\d{1,18})", cursor, re.ASCII)
    try:
        if found is not None:
            return datetime.fromisoformat(found[1]).replace(tzinfo=UTC), int(found[2])
    except ValueError:
        pass
    raise Invalid("cursor", f"{cursor[:80]!r} is none; use the one that the page before gave.")
