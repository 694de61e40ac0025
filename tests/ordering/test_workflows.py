"""Items with steps, listed by what they do now."""

from datetime import timedelta

import pytest
from sqlalchemy import Connection

from ordering import items, plans, steps, workflows
from ordering.decide import Asleep, Failed
from ordering.errors import Invalid
from ordering.finish import finish
from ordering.model import Claimed, State, StepKind
from ordering.steps import Step
from tests.ordering.acts import ACTOR, BROKEN, TOMORROW, plan, put, run

SOON = Failed("ConnectionError", "no", retry_in=timedelta(minutes=5), counts=False)


@pytest.fixture
def stream(tx: Connection) -> Connection:
    plan(tx, "flows", concurrency=8)
    return tx


def begun(tx: Connection, title: str = "") -> Claimed:
    """A running item that has done its first step."""
    put(tx, plan="flows", title=title)
    claimed = run(tx, "flows")
    assert steps.record(tx, claimed, Step(1, "create account", StepKind.STEP, True, "7"), took=0.5)
    return claimed


def asleep(tx: Connection, duration: timedelta, title: str = "") -> int:
    claimed = begun(tx, title)
    sleep = Asleep(2, "trial", duration)
    assert finish(tx, claimed, sleep) is not None
    return claimed.item_id


def test_sleepers_come_in_the_order_in_which_they_wake(stream: Connection) -> None:
    late, early = asleep(stream, timedelta(days=14), "late"), asleep(stream, timedelta(hours=1), "early")
    found = workflows.workflows(stream, "asleep", limit=10)
    assert [(each.id, each.title, each.step, each.number, each.kind) for each in found.items] == [
        (early, "early", "trial", 2, StepKind.SLEEP),
        (late, "late", "trial", 2, StepKind.SLEEP),
    ]
    first = found.items[0]
    assert first.until is not None
    assert first.until - first.since == timedelta(hours=1)
    assert (first.done, first.state, first.plan, first.task) == (2, State.POSTPONED, "flows", "noop")
    assert found.next is None


def test_they_come_page_by_page(stream: Connection) -> None:
    ids = [asleep(stream, timedelta(hours=number)) for number in (1, 2, 2, 3)]
    seen, after = [], None
    while True:
        page = workflows.workflows(stream, "asleep", limit=1, after=after)
        seen += [each.id for each in page.items]
        after = page.next
        if after is None:
            break
    assert seen == ids


def test_what_runs_says_its_last_step(stream: Connection) -> None:
    claimed = begun(stream)
    put(stream, plan="flows")
    run(stream, "flows")  # without steps
    (found,) = workflows.workflows(stream, "running", limit=10).items
    assert (found.id, found.state, found.step, found.done, found.until) == (claimed.item_id, State.RUNNING, "create account", 1, None)


def test_what_backs_off_and_what_needs_a_person(stream: Connection) -> None:
    claimed = begun(stream)
    assert steps.record(stream, claimed, Step(2, "charge", StepKind.STEP, False, None, 1, "no"), took=0.1)
    assert finish(stream, claimed, SOON) is not None
    (found,) = workflows.workflows(stream, "backing-off", limit=10).items
    assert (found.id, found.step, found.failures, found.state) == (claimed.item_id, "charge", 1, State.WAITING)
    assert found.until is not None
    plan(stream)
    put(stream)
    plans.start(stream, "line", actor=ACTOR)
    broken = run(stream)
    steps.record(stream, broken, Step(1, "only", StepKind.STEP, True, "1"), took=0.1)
    finish(stream, broken, BROKEN)
    assert [each.id for each in workflows.workflows(stream, "unresolved", limit=10).items] == [broken.item_id]


def test_what_cannot_be_asked(stream: Connection) -> None:
    for state, after, field in (
        ("nothing", None, "state"),
        ("asleep", "x", "cursor"),
        ("asleep", "2030-13-01T00:00:00.000000~1", "cursor"),
    ):
        with pytest.raises(Invalid) as caught:
            workflows.workflows(stream, state, limit=1, after=after)
        assert caught.value.field == field


def test_among_many_that_wait_without_steps_a_page_is_bounded_and_goes_on(stream: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workflows, "SCAN", 3)
    others = put(stream, 4, plan="flows")
    for number, each in enumerate(others):
        items.postpone(stream, each, TOMORROW + timedelta(minutes=number), actor=ACTOR)
    last = asleep(stream, timedelta(days=14))
    first = workflows.workflows(stream, "asleep", limit=10)
    assert first.items == []
    assert first.next is not None
    second = workflows.workflows(stream, "asleep", limit=10, after=first.next)
    assert ([each.id for each in second.items], second.next) == ([last], None)
