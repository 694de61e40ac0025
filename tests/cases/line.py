"""The line as people see it, and many callers of the verbs at the same moment."""

import threading
from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from ordering import db, lines
from tests.cases.kit import Kit

T = TypeVar("T")
P = ParamSpec("P")


def shown(kit: Kit, plan: str, page: int = 1000) -> list[int]:
    """The ids of what waits, in their order, read page by page."""
    found: list[int] = []
    cursor: lines.Cursor | None = None
    plan_id = kit.view(plan).id
    with kit.tx() as tx:
        while True:
            part = lines.waiting(tx, plan_id, limit=page, after=cursor)
            found += [item.id for item in part.items]
            if part.next is None:
                return found
            cursor = lines.Cursor.parse(str(part.next))


def positions_fit(kit: Kit) -> None:
    """Positions of unsettled items are pairwise distinct in their plan, and within the declared 41 characters."""
    (row,) = kit.sql("""
        select count(*) - count(distinct (plan_id, position)) as doubles, max(length(position::text)) as longest
        from relevo.item where settled_at is null
    """)
    assert row.doubles == 0
    assert (row.longest or 0) <= 41


def act(kit: Kit, verb: Callable[Concatenate[Connection, P], T], *arguments: P.args, **options: P.kwargs) -> T:
    """One verb in a transaction of its own, as a request does it."""
    return db.transact(kit.engine, lambda tx: verb(tx, *arguments, **options))


def crowded(kit: Kit) -> None:
    """From now on each of the case's transactions has a connection of its own, as so many clients would have."""
    kit.engine.dispose()
    kit.engine = db.engine(kit.database_url, name="relevo case", pooled=False)


def at_once(calls: Sequence[Callable[[], T]]) -> list[T | Exception]:
    """Let all calls begin at the same moment, each in a thread; what each returned or raised, in their order."""
    results: list[T | Exception] = [AssertionError("did not end")] * len(calls)
    gate = threading.Barrier(len(calls))

    def run(number: int, call: Callable[[], T]) -> None:
        gate.wait(60)
        try:
            results[number] = call()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number, call), name=f"caller {number}") for number, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return results
