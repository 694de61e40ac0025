"""Claiming: the row wins over the message, and a second copy finds nothing."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, text

from ordering import attempt, decision, finish, items, plans, tasks
from ordering.decide import DEFAULT_MAX_ATTEMPTS, Failed
from ordering.items import Edit
from ordering.model import OnInterrupt, State
from ordering.tasks import TaskInfo
from tests.ordering.acts import ACTOR, BROKEN, TOMORROW, assert_sound, claim, dead_session, events, feed, outcomes, plan, put, run, state


@pytest.fixture
def started(tx: Connection) -> Connection:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    return tx


def copies(tx: Connection) -> int:
    found: int = tx.execute(text("select coalesce(sum(copies_dropped), 0) from relevo.dispatch")).scalar_one()
    return found


def test_a_claim_gives_the_item_as_it_is_now(started: Connection) -> None:
    (item_id,) = put(started, args=[1], kwargs={"a": 2})
    fed = feed(started)
    assert fed
    items.edit(started, item_id, Edit(args=["new"], max_attempts=2), actor=ACTOR)
    claimed = claim(started, fed)
    assert (claimed.item_id, claimed.dispatch_id, claimed.plan, claimed.serial) == (item_id, fed.id, "line", True)
    assert (claimed.task, claimed.args, claimed.kwargs) == ("noop", ["new"], {"a": 2})
    assert (claimed.attempt, claimed.tries, claimed.max_attempts) == (1, 0, 2)
    assert state(started, item_id) is State.RUNNING


def test_a_second_copy_finds_nothing_and_is_counted(started: Connection) -> None:
    put(started)
    fed = feed(started)
    assert fed
    claim(started, fed)
    for copy in range(1, 4):
        assert attempt.claim(started, fed.id, session_id=dead_session(started)) == []
        assert copies(started) == copy


def test_a_session_may_repeat_its_own_claim(started: Connection) -> None:
    put(started)
    fed = feed(started)
    assert fed
    mine = dead_session(started)
    assert attempt.claim(started, fed.id, session_id=mine) == attempt.claim(started, fed.id, session_id=mine)
    assert copies(started) == 0


def test_a_message_that_nobody_sent_runs_nothing(started: Connection) -> None:
    assert attempt.claim(started, uuid4(), session_id=dead_session(started)) == []


@pytest.mark.parametrize("change", ["cancel", "postpone", "finish"])
def test_what_a_person_changed_meanwhile_wins(started: Connection, change: str) -> None:
    (item_id,) = put(started)
    fed = feed(started)
    assert fed
    match change:
        case "cancel":
            items.cancel(started, item_id, actor=ACTOR)
        case "postpone":
            items.postpone(started, item_id, TOMORROW, actor=ACTOR)
        case "finish":
            finish.finish(started, claim(started, fed), BROKEN)
            decision.retry(started, item_id, actor=ACTOR)
    assert attempt.claim(started, fed.id, session_id=dead_session(started)) == []
    assert copies(started) == 1
    assert_sound(started)


@pytest.mark.parametrize(
    ("plan_says", "task_says", "item_says", "tries", "interrupted"),
    [
        ({}, {}, {}, DEFAULT_MAX_ATTEMPTS, "hold"),
        ({"max_attempts": 2, "on_interrupt": OnInterrupt.REQUEUE}, {}, {}, 2, "requeue"),
        ({"max_attempts": 2, "on_interrupt": OnInterrupt.REQUEUE}, {"max_attempts": 3, "on_interrupt": OnInterrupt.HOLD}, {}, 3, "hold"),
        ({"max_attempts": 2}, {"max_attempts": 3}, {"max_attempts": 5, "on_interrupt": OnInterrupt.REQUEUE}, 5, "requeue"),
        ({"concurrency": 2}, {}, {}, DEFAULT_MAX_ATTEMPTS, "requeue"),
    ],
)
def test_the_item_says_more_than_its_task_and_the_task_more_than_the_plan(
    tx: Connection, plan_says: dict[str, Any], task_says: dict[str, Any], item_says: dict[str, Any], tries: int, interrupted: str
) -> None:
    plan(tx, "mixed", **plan_says)
    if task_says:
        tasks.register(tx, [TaskInfo("noop", "relevo", **task_says)])
    put(tx, plan="mixed", **item_says)
    plans.start(tx, "mixed", actor=ACTOR)
    claimed = run(tx, "mixed")
    assert (claimed.max_attempts, claimed.on_interrupt) == (tries, interrupted)


def test_a_claimed_dispatch_has_its_session_and_time(started: Connection) -> None:
    put(started)
    fed = feed(started)
    assert fed
    mine = dead_session(started)
    attempt.claim(started, fed.id, session_id=mine)
    row = started.execute(text("select session_id, claimed_at = now() from relevo.dispatch")).one()
    assert tuple(row) == (mine, True)


def test_a_message_that_no_worker_can_take_fails_its_item(started: Connection) -> None:
    put(started, 2)
    fed = feed(started)
    assert fed
    why = Failed("UnknownTask", "no worker has it", final=True)
    finish.refuse(started, fed.id, "other", why)  # the item was edited since: this message speaks of nothing
    finish.refuse(started, uuid4(), "noop", why)
    assert copies(started) == 0
    assert state(started, item(started, fed.id)) is State.DISPATCHED
    failing = item(started, fed.id)
    finish.refuse(started, fed.id, "noop", why)
    assert (state(started, failing), items.get(started, failing).error) == (State.FAILED, "no worker has it")
    assert [str(each) for each in outcomes(started, failing)] == ["failed"]
    finish.refuse(started, fed.id, "noop", why)
    assert items.get(started, failing).attempts == 1
    assert_sound(started)


def test_a_claimed_dispatch_is_not_refused(started: Connection) -> None:
    put(started)
    claimed = run(started)
    finish.refuse(started, claimed.dispatch_id, "noop", BROKEN)
    assert state(started, claimed.item_id) is State.RUNNING
    assert "fence" not in events(started)


def item(tx: Connection, dispatch_id: object) -> int:
    found: int = tx.execute(text("select id from relevo.item where dispatch_id = :id"), {"id": dispatch_id}).scalar_one()
    return found
