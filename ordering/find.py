"""Find: items of all plans by id, key or a text in their titles, and plans by name, within a bound."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from ordering.errors import Invalid
from ordering.lines import LINE, ItemLine, line
from ordering.row import KEY_LIMIT
from ordering.text import checked

SCAN = 20_000  # items whose titles are looked through, the latest: about 30 ms
BIGGEST_ID = 2**63 - 1


@dataclass(frozen=True)
class PlanName:
    """A plan by its name."""

    name: str
    title: str


@dataclass(frozen=True)
class Found:
    """What was found. `more`: there are items beyond the limit; `scanned`: only the latest SCAN titles were looked through."""

    items: Sequence[ItemLine]
    plans: Sequence[PlanName]
    more: bool
    scanned: bool


# The key's index begins with the plan, so each plan is asked for it.
BY_KEY = text("""
    select i.id from relevo.plan p cross join lateral (
        select id from relevo.item where plan_id = p.id and key = :wanted) i order by i.id desc limit :limit
""")
BY_TITLE = text("""
    with latest as materialized (select id, title, key, entry from relevo.item order by id desc limit :scan)
    select array(
            select id from latest where strpos(lower(concat_ws(' ', title, key, entry)), lower(:wanted)) > 0 order by id desc limit :limit
        ) as ids, (select count(*) from latest) as scanned
""")
PLANS = text("""
    select name, left(title, 200) as title from relevo.plan
    where strpos(lower(name), lower(:wanted)) > 0 or strpos(lower(title), lower(:wanted)) > 0 order by name limit :limit
""")
LINES = text(f"select {LINE} where i.id = any(:ids)")


def find(tx: Connection, wanted: str, *, limit: int) -> Found:
    """Up to `limit` items and as many plans: the item of this id first, then those of this key, then titles that hold the text.

    Raises Invalid naming `q`.
    """
    wanted = checked("q", wanted.strip(), KEY_LIMIT)
    if not wanted:
        raise Invalid("q", "is empty; write an id, a key or a part of a title.")
    ids: list[int] = []
    number = re.fullmatch("#?([0-9]{1,19})", wanted, re.ASCII)
    if number is not None and int(number[1]) <= BIGGEST_ID:
        ids.append(int(number[1]))
    values = {"wanted": wanted, "limit": limit + 1}
    ids += tx.execute(BY_KEY, values).scalars()
    titles = tx.execute(BY_TITLE, {**values, "scan": SCAN}).one()
    ids = list(dict.fromkeys([*ids, *titles.ids]))
    by_id = {row.id: line(row) for row in tx.execute(LINES, {"ids": ids})}
    items = [by_id[each] for each in ids if each in by_id]
    plans = [PlanName(**row._mapping) for row in tx.execute(PLANS, {"wanted": wanted, "limit": limit})]
    return Found(items[:limit], plans, len(items) > limit, titles.scanned == SCAN)
