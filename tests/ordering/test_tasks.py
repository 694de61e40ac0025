"""The registry of tasks: what workers offer stays until a command removes it."""

import pytest
from sqlalchemy import Connection, text

from ordering import tasks
from ordering.errors import UnknownTask
from ordering.model import OnInterrupt
from ordering.tasks import TaskInfo, TaskView


def rows(tx: Connection) -> list[tuple[object, ...]]:
    found = "select name, queue, plan, on_interrupt, max_attempts from relevo.task order by name"
    return [tuple(row) for row in tx.execute(text(found))]


def test_tasks_are_added_and_updated_and_none_is_removed(tx: Connection) -> None:
    tasks.register(tx, [TaskInfo("b", "relevo"), TaskInfo("a", "slow", "nightly", OnInterrupt.REQUEUE, 3)])
    tasks.register(tx, [TaskInfo("b", "fast", max_attempts=2)])
    assert rows(tx) == [("a", "slow", "nightly", "requeue", 3), ("b", "fast", None, None, 2)]
    assert sorted(tx.execute(text("select queue from relevo.task")).scalars()) == ["fast", "slow"]


def test_a_task_offered_again_unchanged_writes_nothing(tx: Connection) -> None:
    offered = [TaskInfo("a", "relevo", on_interrupt=OnInterrupt.HOLD)]
    tasks.register(tx, offered)
    tx.execute(text("update relevo.task set registered_at = '2020-01-01'"))
    tasks.register(tx, offered)
    assert tx.execute(text("select extract(year from registered_at) from relevo.task")).scalar_one() == 2020
    tasks.register(tx, [TaskInfo("a", "relevo")])
    assert tx.execute(text("select registered_at = now() from relevo.task")).scalar_one()


def test_an_unknown_task_is_refused_naming_the_known_ones(tx: Connection) -> None:
    with pytest.raises(UnknownTask, match=r"No worker has offered a task 'x' \(known: none yet\); name its module under `imports`"):
        tasks.require(tx, "x")
    tasks.register(tx, [TaskInfo("b", "relevo"), TaskInfo("a", "relevo")])
    tasks.require(tx, "a")
    with pytest.raises(UnknownTask, match=r"\(known: a, b\)"):
        tasks.require(tx, "x")


def test_what_is_offered_is_listed_by_name(tx: Connection) -> None:
    assert tasks.offered(tx) == []
    tasks.register(tx, [TaskInfo("b", "relevo", batch=True, batch_size=50), TaskInfo("a", "slow", "nightly", OnInterrupt.REQUEUE, 3)])
    now = tx.execute(text("select now()")).scalar_one()
    assert tasks.offered(tx) == [
        TaskView("a", "slow", "nightly", OnInterrupt.REQUEUE, 3, registered_at=now),
        TaskView("b", "relevo", batch=True, batch_size=50, registered_at=now),
    ]
