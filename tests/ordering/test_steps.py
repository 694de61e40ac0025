"""Steps in Postgres: one guarded write each, a sleep with its item in one transaction, and sleepers that cost nothing."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Connection, text

from ordering import attempt, decision, head, history, items, plans, reconcile, steps
from ordering.decide import Asleep, Failed, Succeeded
from ordering.finish import finish
from ordering.model import Claimed, State, StepKind
from ordering.steps import Step
from tests.ordering.acts import ACTOR, LONG_AGO, assert_sound, events, feed, lose, open_run, outcomes, plan, put, run, state

SLEEP = Asleep(2, "night", timedelta(hours=8))


@pytest.fixture
def claimed(tx: Connection) -> Claimed:
    plan(tx)
    put(tx, 2)
    plans.start(tx, "line", actor=ACTOR)
    return run(tx)


def done(number: int = 1, name: str = "a", result: str = "1") -> Step:
    return Step(number, name, StepKind.STEP, True, result)


def test_a_finished_step_is_remembered(tx: Connection, claimed: Claimed) -> None:
    assert not claimed.stepped
    assert steps.record(tx, claimed, done(result='{"b": 1e22, "a": "\\u0000"}'), took=1.5)
    assert steps.recorded(tx, claimed.item_id) == [done(result='{"b": 1e22, "a": "\\u0000"}')]
    again = attempt.claim(tx, claimed.dispatch_id, session_id=session_of(tx, claimed))
    assert [each.stepped for each in again] == [True]
    (view,) = history.history(tx, claimed.item_id).steps
    assert view.ended_at is not None
    assert view.ended_at - view.started_at == timedelta(seconds=1.5)


def session_of(tx: Connection, claimed: Claimed) -> int:
    found: int = tx.execute(text("select session_id from relevo.dispatch where id = :id"), {"id": claimed.dispatch_id}).scalar_one()
    return found


def test_a_repeated_commit_changes_nothing(tx: Connection, claimed: Claimed) -> None:
    failed = Step(1, "a", StepKind.STEP, False, None, 1, "no")
    for step in (failed, failed, done(), done()):
        assert steps.record(tx, claimed, step, took=0)
    assert steps.recorded(tx, claimed.item_id) == [done()]


def test_a_result_is_never_handed_to_another_step(tx: Connection, claimed: Claimed) -> None:
    assert steps.record(tx, claimed, done(), took=0)
    assert not steps.record(tx, claimed, done(name="b", result="2"), took=0)
    assert steps.recorded(tx, claimed.item_id) == [done()]


@pytest.mark.parametrize("decided", ["cancelled", "skipped", "requeued", "finished"])
def test_a_decided_item_takes_no_step(tx: Connection, claimed: Claimed, decided: str) -> None:
    match decided:
        case "cancelled":
            items.cancel(tx, claimed.item_id, actor=ACTOR)
        case "skipped":
            lose(tx, claimed)
            decision.skip(tx, claimed.item_id, actor=ACTOR)
        case "requeued":
            lose(tx, claimed)
            decision.retry(tx, claimed.item_id, actor=ACTOR)
            assert run(tx).item_id == claimed.item_id
        case "finished":
            finish(tx, claimed, Succeeded(None))
    assert not steps.record(tx, claimed, done(), took=0)
    assert steps.recorded(tx, claimed.item_id) == []


def test_what_an_interrupted_process_had_finished_is_kept_and_its_body_ends(tx: Connection, claimed: Claimed) -> None:
    lose(tx, claimed)
    assert not steps.record(tx, claimed, done(), took=0)
    assert steps.recorded(tx, claimed.item_id) == [done()]
    assert state(tx, claimed.item_id) is State.INTERRUPTED


def test_a_step_s_retry_uses_up_no_try(tx: Connection, claimed: Claimed) -> None:
    ended = Failed("E", "no", retry_in=timedelta(minutes=1), counts=False)
    assert finish(tx, claimed, ended) is State.WAITING
    item = items.get(tx, claimed.item_id)
    assert (item.attempts, item.tries) == (1, 0)
    assert outcomes(tx, item.id) == ["failed"]
    assert item.not_before is not None
    assert feed(tx) is None  # the head-to-be: the line waits for it
    assert_sound(tx)


def test_a_sleep_puts_the_item_off_and_is_remembered_with_it(tx: Connection, claimed: Claimed) -> None:
    steps.record(tx, claimed, done(), took=0)
    assert finish(tx, claimed, SLEEP) is State.POSTPONED
    item = items.get(tx, claimed.item_id)
    assert (item.attempts, item.tries, item.at_head) == (0, 0, False)
    first, sleep = history.history(tx, item.id).steps
    assert (sleep.kind, sleep.wake_at, sleep.done, sleep.ended_at) == (StepKind.SLEEP, item.not_before, False, None)
    assert item.not_before is not None
    assert item.not_before - sleep.started_at == timedelta(hours=8)
    assert first.done
    assert events(tx, item.id)[-1] == "postpone"
    assert_sound(tx)
    other = run(tx)  # the line goes on
    assert other.item_id != item.id
    finish(tx, other, Succeeded(None))
    assert feed(tx) is None
    assert open_run(tx)


def test_when_the_time_has_come_the_sleep_is_over(tx: Connection, claimed: Claimed) -> None:
    finish(tx, claimed, Asleep(1, "nap", timedelta(0)))
    assert head.wake_postponed(tx) == {claimed.plan_id}
    again = run(tx)
    assert (again.item_id, again.attempt, again.stepped) == (claimed.item_id, 1, True)
    assert [(step.kind, step.done) for step in steps.recorded(tx, again.item_id)] == [(StepKind.SLEEP, True)]
    assert history.history(tx, again.item_id).steps[0].done


def test_a_sleep_whose_commit_was_not_heard_of_is_known(tx: Connection, claimed: Claimed) -> None:
    assert finish(tx, claimed, SLEEP) is State.POSTPONED
    assert finish(tx, claimed, SLEEP) is State.POSTPONED
    assert "fence" not in events(tx, claimed.item_id)
    assert len(steps.recorded(tx, claimed.item_id)) == 1


def test_a_sleep_of_a_decided_item_is_a_late_result(tx: Connection, claimed: Claimed) -> None:
    items.cancel(tx, claimed.item_id, actor=ACTOR)
    assert finish(tx, claimed, SLEEP) is None
    assert steps.recorded(tx, claimed.item_id) == []
    assert events(tx, claimed.item_id)[-1] == "fence"
    assert_sound(tx)


def test_a_sleep_undoes_an_undecided_interruption(tx: Connection, claimed: Claimed) -> None:
    lose(tx, claimed)
    assert finish(tx, claimed, SLEEP) is State.POSTPONED
    assert items.get(tx, claimed.item_id).tries == 0
    assert_sound(tx)


def test_a_person_ends_a_sleep_early_or_lets_it_last(tx: Connection, claimed: Claimed) -> None:
    finish(tx, claimed, SLEEP)
    items.postpone(tx, claimed.item_id, datetime.now(UTC) + timedelta(days=2), actor=ACTOR)
    assert history.history(tx, claimed.item_id).steps[0].done is False
    items.postpone(tx, claimed.item_id, LONG_AGO, actor=ACTOR)
    assert history.history(tx, claimed.item_id).steps[0].done is True
    assert run(tx).item_id == claimed.item_id


def test_a_requeued_item_comes_back_with_its_steps(tx: Connection, claimed: Claimed) -> None:
    tx.execute(text("update relevo.item set on_interrupt = 'requeue'"))
    steps.record(tx, claimed, done(), took=0)
    lose(tx, claimed)
    reconcile.close(tx, session_of(tx, claimed), proved=True)
    again = run(tx)
    assert (again.item_id, again.attempt, again.stepped) == (claimed.item_id, 2, True)
    assert not steps.record(tx, claimed, done(2, "b"), took=0)
    assert steps.record(tx, again, done(2, "b"), took=0)
