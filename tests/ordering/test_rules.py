"""What goes for an item."""

import pytest
from sqlalchemy import Connection

from ordering import rules, tasks
from ordering.errors import UnknownItem
from ordering.model import OnInterrupt
from ordering.rules import Rules
from ordering.tasks import NO_LIMIT, TaskInfo
from tests.ordering.acts import plan, put


def test_the_item_goes_before_its_task_and_that_before_the_plan(tx: Connection) -> None:
    plan(tx, max_attempts=7)
    (by_plan,) = put(tx)
    assert rules.rules(tx, by_plan) == Rules(7, OnInterrupt.HOLD, None)
    tasks.register(tx, [TaskInfo("noop", "slow", on_interrupt=OnInterrupt.REQUEUE, max_attempts=NO_LIMIT)])
    (by_task,) = put(tx)
    assert rules.rules(tx, by_task) == Rules(None, OnInterrupt.REQUEUE, "slow")
    (by_item,) = put(tx, max_attempts=3, on_interrupt=OnInterrupt.HOLD)
    assert rules.rules(tx, by_item) == Rules(3, OnInterrupt.HOLD, "slow")


def test_one_that_is_not_there(tx: Connection) -> None:
    with pytest.raises(UnknownItem):
        rules.rules(tx, 10**9)
