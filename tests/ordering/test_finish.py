"""Finishing: every outcome under every policy, late results, and commits whose answer was lost."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, text

from ordering import decision, finish, items, plans
from ordering.decide import AlreadyDone, Ended, Failed, NotYet, Succeeded
from ordering.model import OnFailure, Outcome, State
from ordering.text import RESULT_LIMIT
from tests.ordering.acts import (
    ACTOR,
    BROKEN,
    DONE,
    TOMORROW,
    assert_sound,
    claim,
    events,
    feed,
    lose,
    open_run,
    order,
    outcomes,
    plan,
    put,
    run,
    state,
)

SOON = timedelta(minutes=3)
RETRY = Failed("ValueError", "it broke", retry_in=SOON)
# how it ended, the state that follows, outcome, whether a try was used
TABLE: list[tuple[Ended, State, Outcome | None, int]] = [
    (DONE, State.SUCCEEDED, Outcome.SUCCEEDED, 1),
    (BROKEN, State.FAILED, Outcome.FAILED, 1),
    (RETRY, State.WAITING, Outcome.FAILED, 1),
    (AlreadyDone("it was there"), State.SKIPPED, None, 0),
    (NotYet(TOMORROW, "too early"), State.POSTPONED, None, 0),
]


@pytest.mark.parametrize(("ended", "to", "outcome", "tries"), TABLE)
@pytest.mark.parametrize("policy", list(OnFailure))
def test_a_serial_plan_after_each_end(
    tx: Connection, policy: OnFailure, ended: Ended, to: State, outcome: Outcome | None, tries: int
) -> None:
    plan(tx, on_failure=policy)
    plans.start(tx, "line", actor=ACTOR)
    first, second = put(tx, 2)
    assert finish.finish(tx, run(tx), ended) is to
    item = items.get(tx, first)
    halted = to is State.FAILED and policy is OnFailure.HALT
    assert (item.state, item.at_head, item.attempts, item.tries) == (to, halted, int(outcome is not None), tries)
    assert outcomes(tx, first) == ([outcome] if outcome else [])
    if outcome is None:
        assert events(tx, first)[-1] == ("skip" if to is State.SKIPPED else "postpone")
    assert_sound(tx)
    fed = feed(tx)
    blocked = halted or to is State.WAITING  # a retry in line is the head-to-be, and the line waits for it
    assert (fed is None) == blocked
    if not blocked:
        assert order(tx) == []
        assert state(tx, second) is State.DISPATCHED
    assert open_run(tx)


@pytest.mark.parametrize(("ended", "to", "outcome", "tries"), TABLE)
def test_a_stream_after_each_end(tx: Connection, ended: Ended, to: State, outcome: Outcome | None, tries: int) -> None:
    plan(tx, concurrency=2)
    (first,) = put(tx)
    expected = State.WAITING if to is State.FAILED else to  # streams try again by themselves
    assert finish.finish(tx, run(tx), ended) is expected
    item = items.get(tx, first)
    assert (item.state, item.at_head, item.attempts, item.tries) == (expected, False, int(outcome is not None), tries)
    if expected is State.WAITING:
        wait = tx.execute(text("select not_before - now() from relevo.item")).scalar_one()
        assert wait == SOON if ended is RETRY else timedelta(0) <= wait <= timedelta(seconds=10)
    assert_sound(tx)


def test_a_stream_gives_up_when_its_tries_are_used_up_or_the_task_says_so(tx: Connection) -> None:
    plan(tx, concurrency=2, max_attempts=2)
    put(tx, 1)
    assert finish.finish(tx, run(tx), BROKEN) is State.WAITING
    tx.execute(text("update relevo.item set not_before = null"))
    assert finish.finish(tx, run(tx), RETRY) is State.FAILED
    put(tx, 1)
    assert finish.finish(tx, run(tx), Failed("ValueError", "no", final=True)) is State.FAILED
    assert_sound(tx)


def test_a_retry_comes_after_its_delay_with_the_arguments_it_asked_for(tx: Connection) -> None:
    plan(tx, on_failure=OnFailure.CONTINUE)
    plans.start(tx, "line", actor=ACTOR)
    put(tx, args=[1], kwargs={"a": 1})
    finish.finish(tx, run(tx), Failed("Retry", "again", retry_in=SOON, args=[2], kwargs={"b": 2}))
    assert feed(tx) is None
    tx.execute(text("update relevo.item set not_before = now()"))
    again = run(tx)
    assert (again.args, again.kwargs, again.attempt, again.tries) == ([2], {"b": 2}, 2, 1)


def test_a_result_is_kept_and_made_storable(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    put(tx, 3)
    results: list[Any] = [{"a": [1, None, "ü"]}, {"\x00k": "v\ud800"}, "x" * (RESULT_LIMIT + 1)]
    kept = []
    for result in results:
        claimed = run(tx)
        finish.finish(tx, claimed, Succeeded(result))
        kept.append(items.get(tx, claimed.item_id).result)
    assert kept[:2] == [{"a": [1, None, "ü"]}, {"\ufffdk": "v\ufffd"}]
    assert "too large to keep" in kept[2]


def test_an_error_is_kept_cut_and_made_storable(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    (item_id,) = put(tx)
    finish.finish(tx, run(tx), Failed("x" * 300, "a\x00b" + "y" * 50_000))
    item = items.get(tx, item_id)
    assert item.error
    assert item.error.startswith("a\ufffdb")
    assert "characters left out" in item.error
    assert len(item.error) < 21_000


def test_the_same_finish_again_gives_the_same_answer_and_changes_nothing(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    put(tx)
    claimed = run(tx)
    assert finish.finish(tx, claimed, DONE) is State.SUCCEEDED
    assert finish.finish(tx, claimed, DONE) is State.SUCCEEDED
    assert outcomes(tx, claimed.item_id) == [Outcome.SUCCEEDED]
    assert "fence" not in events(tx)


@pytest.mark.parametrize("ended", [each for each, *_ in TABLE])
def test_a_result_after_somebody_decided_changes_nothing_and_is_kept(tx: Connection, ended: Ended) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    (item_id,) = put(tx)
    claimed = run(tx)
    lose(tx, claimed)
    decision.resolve(tx, item_id, actor=ACTOR, note="by hand")
    old = items.get(tx, item_id)
    assert finish.finish(tx, claimed, ended) is None
    assert items.get(tx, item_id) == old
    assert outcomes(tx, item_id) == [Outcome.INTERRUPTED]
    late = tx.execute(text("select after ->> 'dispatch' from relevo.event where action = 'fence'")).scalar_one()
    assert late == str(claimed.dispatch_id)
    assert_sound(tx)


def test_a_result_of_an_earlier_dispatch_is_fenced(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    put(tx)
    first = run(tx)
    lose(tx, first)
    decision.retry(tx, first.item_id, actor=ACTOR)
    fed = feed(tx)
    assert fed
    assert finish.finish(tx, first, DONE) is None
    assert state(tx, first.item_id) is State.DISPATCHED
    assert finish.finish(tx, claim(tx, fed), DONE) is State.SUCCEEDED
    assert_sound(tx)


def test_a_result_in_hand_undoes_an_unresolved_interruption(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    (item_id,) = put(tx)
    claimed = run(tx)
    lose(tx, claimed)
    assert finish.finish(tx, claimed, DONE) is State.SUCCEEDED
    item = items.get(tx, item_id)
    assert (item.attempts, item.tries, item.error) == (1, 1, None)
    assert outcomes(tx, item_id) == [Outcome.SUCCEEDED]
    assert_sound(tx)
