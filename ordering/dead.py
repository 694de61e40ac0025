"""Read models of dead letters: the unresolved items of streams, listed, and grouped by what they died of. Nothing here writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row, TextClause, text

from ordering import plans
from ordering.errors import Invalid, NotStream
from ordering.items import TASK_LIMIT
from ordering.lines import PAGE_LIMIT, TEXT_LIMIT
from ordering.model import State
from ordering.text import checked

# An interruption counts once its session is closed: until then its process may come back, and the item may still be requeued.
DEAD = """
    i.state in ('failed', 'interrupted') and p.concurrency > 1 and (i.state = 'failed' or not exists (
        select from relevo.dispatch d join relevo.session s on s.id = d.session_id
        where d.id = i.dispatch_id and d.ended_at is null and s.closed_at is null))
"""

SEARCH_LIMIT = 200  # characters
CONTAINING = """
    and strpos(lower(concat_ws(' ', i.error, i.title, i.key, i.args::text, i.kwargs::text)), lower(:containing)) > 0
"""


@dataclass(frozen=True)
class Which:
    """Which dead letters: of one plan, of one error group, of one task, whose error or title holds a text; what is None does not matter."""

    plan_id: int | None = None
    group: str | None = None
    task: str | None = None
    containing: str | None = None

    def where(self) -> str:
        """The condition. Written anew for each kind, so that each gets a plan of its own over the index that fits."""
        plan = " and i.plan_id = :plan_id" if self.plan_id is not None else ""
        group = " and i.error_group = :error_group" if self.group is not None else ""
        task = " and i.task = :task" if self.task is not None else ""
        return f"{DEAD}{plan}{group}{task}{CONTAINING if self.containing is not None else ''}"

    def values(self) -> dict[str, object]:
        """The values of `where`."""
        given = {"plan_id": self.plan_id, "error_group": self.group, "task": self.task, "containing": self.containing}
        return {name: value for name, value in given.items() if value is not None}


def which(
    tx: Connection, *, plan: str | None = None, group: str | None = None, task: str | None = None, containing: str | None = None
) -> Which:
    """The letters of the stream `plan`, of the error group `group`, of the `task`, and `containing` that text in any case.

    Looked for in error, title, key and arguments. Raises UnknownPlan, NotStream, Invalid.
    """
    if task is not None:
        checked("task", task, TASK_LIMIT)
    if containing is not None:
        checked("text", containing, SEARCH_LIMIT)
    if group is not None and not re.fullmatch("[0-9a-f]{12}", group):
        raise Invalid("group", f"{group[:40]!r} is none; a group is 12 of 0-9 and a-f, as the list of groups has it.")
    if plan is None:
        return Which(None, group, task, containing)
    found = plans.get(tx, plan)
    if found.serial:
        raise NotStream(plan)
    return Which(found.id, group, task, containing)


@dataclass(frozen=True)
class Cursor:
    """Where the next page begins: behind this plan and position. `str()` and `parse` are its text form."""

    plan_id: int
    position: Decimal

    def __str__(self) -> str:
        return f"{self.plan_id}:{self.position:f}"

    @classmethod
    def parse(cls, written: str) -> Cursor:
        """The cursor that `str()` wrote. Raises Invalid."""
        found = re.fullmatch(r"([0-9]{1,18}):(-?[0-9]{1,15}(?:\.[0-9]{1,24})?)", written)
        if found is None:
            raise Invalid("cursor", f"{written[:80]!r} is none; use the one that the page before gave.")
        return cls(int(found[1]), Decimal(found[2]))


BEFORE_ALL = Cursor(0, Decimal(-(10**15)))


def page(columns: str, chosen: Which, more: str = "") -> TextClause:
    """A statement for `columns` (among them plan_id and position) of one page of the chosen letters that also fulfil `more`.

    By plan and position, which no two unsettled items of a plan share. Each part is one range of an index; compared as one row of
    two columns, Postgres takes what is left for next to nothing in the last plan, and reads and sorts all of it for each page.
    """
    select = f"select {columns} from relevo.item i join relevo.plan p on p.id = i.plan_id where {chosen.where()} {more}"
    rest = "and i.plan_id = :after_plan and i.position > :after_position order by i.plan_id, i.position limit :limit"
    if chosen.plan_id is not None:
        return text(f"{select} {rest}")
    later = "and i.plan_id > :after_plan order by i.plan_id, i.position limit :limit"
    return text(f"({select} {rest}) union all ({select} {later}) order by plan_id, position limit :limit")


def behind(chosen: Which, after: Cursor | None) -> dict[str, object]:
    """The values of a page that begins behind `after`, or at the beginning."""
    begin = after or BEFORE_ALL
    if chosen.plan_id is not None and begin.plan_id != chosen.plan_id:
        # Of another plan: that is behind none or behind all of this one.
        begin = Cursor(chosen.plan_id, BEFORE_ALL.position if begin.plan_id < chosen.plan_id else -BEFORE_ALL.position)
    return {**chosen.values(), "after_plan": begin.plan_id, "after_position": begin.position}


@dataclass(frozen=True)
class Letter:
    """A dead letter as one line of a list, long texts cut to TEXT_LIMIT; `history` has it whole.

    `since` is when it died. `replays` is how often a person let it run again. `cursor` is where the page behind it begins.
    """

    id: int
    plan: str
    state: State
    task: str
    arguments: str
    title: str
    kind: str
    attempts: int
    replays: int
    error: str | None
    group: str
    since: datetime
    cursor: str


@dataclass(frozen=True)
class Letters:
    """Letters by plan and place in its line; `next` is where the following page begins, or None at the end."""

    letters: Sequence[Letter]
    next: Cursor | None


LETTER = f"""
    i.id, p.name as plan, i.plan_id, i.position, i.state, i.task,
    left(case when i.kwargs = '{{}}' then i.args::text when i.args = '[]' then i.kwargs::text
        else i.args::text || ' ' || i.kwargs::text end, {TEXT_LIMIT}) as arguments,
    left(i.title, {TEXT_LIMIT}) as title, i.kind, i.attempts, i.replays, left(i.error, {TEXT_LIMIT}) as error,
    i.error_group as "group", i.unresolved_at as since
"""


def letters(tx: Connection, chosen: Which, *, limit: int, after: Cursor | None = None) -> Letters:
    """Up to `limit` of the chosen letters, behind `after` if that is given. Raises Invalid."""
    if not 0 <= limit <= PAGE_LIMIT:
        raise Invalid("limit", f"{limit} is out of range; use 0 to {PAGE_LIMIT}.")
    rows = tx.execute(page(LETTER, chosen), {**behind(chosen, after), "limit": limit + 1}).all()
    found = rows[:limit]
    return Letters([_letter(row) for row in found], _cursor(found[-1]) if found and len(rows) > limit else None)


def _cursor(row: Row[Any]) -> Cursor:
    return Cursor(row.plan_id, row.position)


def _letter(row: Row[Any]) -> Letter:
    values = dict(row._mapping)
    del values["plan_id"], values["position"]
    return Letter(**{**values, "state": State(row.state), "cursor": str(_cursor(row))})


ONE = text(f"select {LETTER} from relevo.item i join relevo.plan p on p.id = i.plan_id where {DEAD} and i.id = :id")


def letter(tx: Connection, item_id: int) -> Letter | None:
    """The dead letter with this id, or None if the item is none."""
    row = tx.execute(ONE, {"id": item_id}).one_or_none()
    return None if row is None else _letter(row)


def count(tx: Connection, chosen: Which, *, until: datetime | None = None) -> int:
    """How many of the chosen letters there are, of those that had died by `until` if that is given."""
    by = " and i.unresolved_at <= :until" if until is not None else ""
    counting = text(f"select count(*) from relevo.item i join relevo.plan p on p.id = i.plan_id where {chosen.where()}{by}")
    found: int = tx.execute(counting, {**chosen.values(), **({"until": until} if until is not None else {})}).scalar_one()
    return found


@dataclass(frozen=True)
class Group:
    """Dead letters of one plan and one cause: `pattern` is what their errors have in common, `example` the latest letter's id.

    `first` and `last` are when the first and the last of them died.
    """

    plan: str
    group: str
    count: int
    first: datetime
    last: datetime
    task: str
    pattern: str
    example: int
    error: str | None


def grouping(chosen: Which) -> TextClause:
    """The statement of `groups`."""
    return text(f"""
        with cause as (
            select i.plan_id, i.error_group, count(*) as count, min(i.unresolved_at) as first, max(i.unresolved_at) as last,
                max(i.id) as example
            from relevo.item i join relevo.plan p on p.id = i.plan_id where {chosen.where()} group by 1, 2
            order by count desc, last desc, 1, 2 limit :limit
        )
        select p.name as plan, cause.error_group as "group", count, first, last, i.task,
            coalesce(relevo.error_pattern(i.error), '') as pattern, i.id as example, left(i.error, {TEXT_LIMIT}) as error
        from cause join relevo.plan p on p.id = cause.plan_id join relevo.item i on i.id = cause.example
        order by count desc, last desc, cause.plan_id, cause.error_group
    """)


def groups(tx: Connection, chosen: Which, *, limit: int) -> list[Group]:
    """The chosen letters by plan and cause, the largest groups first; up to `limit` groups. Raises Invalid."""
    if not 0 <= limit <= PAGE_LIMIT:
        raise Invalid("limit", f"{limit} is out of range; use 0 to {PAGE_LIMIT}.")
    return [Group(**row._mapping) for row in tx.execute(grouping(chosen), {**chosen.values(), "limit": limit})]
