"""Retry, skip and resolve, in every state an item can be in; pressed five times at once they make one attempt."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import decision, finish, head, items, plans, reconcile
from ordering.errors import Invalid, MayStillRun, NotAllowed
from ordering.items import Edit
from ordering.model import UNRESOLVED, Item, OnFailure, Outcome, State
from tests.ordering.acts import (
    ACTOR,
    BROKEN,
    DONE,
    assert_sound,
    bring,
    claim,
    end,
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

Verb = Callable[[Connection, int], Item]


def retry(tx: Connection, item_id: int) -> Item:
    return decision.retry(tx, item_id, actor=ACTOR, note="again")


def skip(tx: Connection, item_id: int) -> Item:
    return decision.skip(tx, item_id, actor=ACTOR)


def resolve(tx: Connection, item_id: int) -> Item:
    return decision.resolve(tx, item_id, actor=ACTOR, note="by hand")


VERBS: list[tuple[Verb, State, str]] = [
    (retry, State.WAITING, "retried"),
    (skip, State.SKIPPED, "skipped"),
    (resolve, State.RESOLVED, "resolved"),
]


@pytest.fixture
def started(tx: Connection) -> Connection:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    return tx


@pytest.mark.parametrize(("verb", "to", "_"), VERBS)
@pytest.mark.parametrize("kind", UNRESOLVED)
def test_a_decision_lets_the_same_run_go_on(started: Connection, verb: Verb, to: State, _: str, kind: State) -> None:
    item_id = bring(started, kind)
    (behind,) = put(started)
    assert feed(started) is None
    decided = verb(started, item_id)
    assert (decided.state, decided.at_head, decided.attempts) == (to, False, 1)
    assert events(started, item_id)[-1] == verb.__name__
    assert run(started).item_id == (item_id if to is State.WAITING else behind)
    assert events(started).count("start") == 1
    assert_sound(started)


@pytest.mark.parametrize(("verb", "_", "name"), VERBS)
@pytest.mark.parametrize("kind", [each for each in State if each not in UNRESOLVED])
def test_only_what_is_unresolved_is_decided(started: Connection, verb: Verb, _: State, name: str, kind: State) -> None:
    item_id = bring(started, kind)
    old = items.get(started, item_id)
    with pytest.raises(NotAllowed, match=f"Item {item_id} is {kind}, so it cannot be {name}; "):
        verb(started, item_id)
    assert items.get(started, item_id) == old


def test_a_retry_keeps_place_and_attempts_and_grants_fresh_tries(tx: Connection) -> None:
    plan(tx, max_attempts=1, on_failure=OnFailure.CONTINUE)
    plans.start(tx, "line", actor=ACTOR)
    put(tx, 2)
    broken = end(tx, BROKEN)
    old = items.get(tx, broken)
    again = retry(tx, broken)
    assert (again.position, again.attempts, again.tries, old.tries) == (old.position, 1, 0, 1)
    assert order(tx)[0] == broken
    assert run(tx).attempt == 2


def test_a_retry_may_edit_first(started: Connection) -> None:
    item_id = bring(started, State.FAILED)
    decision.retry(started, item_id, actor=ACTOR, change=Edit(args=["mended"], task="other"))
    claimed = run(started)
    assert (claimed.args, claimed.task) == (["mended"], "other")
    assert events(started, item_id)[-2:] == ["edit", "retry"]


def test_a_resolution_says_how(started: Connection) -> None:
    item_id = bring(started, State.FAILED)
    with pytest.raises(Invalid, match=r"^note: "):
        decision.resolve(started, item_id, actor=ACTOR, note=" ")
    assert state(started, item_id) is State.FAILED


def test_deciding_an_interruption_whose_process_lives_fences_it(started: Connection) -> None:
    put(started)
    claimed = run(started)
    lose(started, claimed)
    retry(started, claimed.item_id)
    again = run(started)
    assert finish.finish(started, claimed, DONE) is None
    assert state(started, claimed.item_id) is State.RUNNING
    assert finish.finish(started, again, DONE) is State.SUCCEEDED
    assert outcomes(started, claimed.item_id) == [Outcome.INTERRUPTED, Outcome.SUCCEEDED]
    assert "fence" in events(started, claimed.item_id)
    assert_sound(started)


def test_a_retry_waits_until_the_process_is_gone_or_had_its_time(started: Connection) -> None:
    put(started, 2)
    claimed = run(started)
    lose(started, claimed, closed=False)
    with pytest.raises(MayStillRun, match="process 4242 on host may still be running it; try again in some seconds"):
        retry(started, claimed.item_id)
    assert (state(started, claimed.item_id), events(started).count("retry")) == (State.INTERRUPTED, 0)
    session_id = started.execute(text("select session_id from relevo.dispatch where id = :id"), {"id": claimed.dispatch_id}).scalar_one()
    reconcile.close(started, session_id, proved=False)
    assert retry(started, claimed.item_id).state is State.WAITING


@pytest.mark.parametrize("verb", [skip, resolve])
def test_a_settled_interruption_need_not_wait_for_its_process(started: Connection, verb: Verb) -> None:
    put(started, 2)
    claimed = run(started)
    lose(started, claimed, closed=False)
    assert verb(started, claimed.item_id).settled_at is not None
    assert finish.finish(started, claimed, DONE) is None


def test_what_continue_left_behind_is_decided_while_another_runs(tx: Connection) -> None:
    plan(tx, on_failure=OnFailure.CONTINUE)
    plans.start(tx, "line", actor=ACTOR)
    put(tx, 2)
    broken = end(tx, BROKEN)
    other = run(tx)
    retry(tx, broken)
    assert feed(tx) is None
    finish.finish(tx, other, DONE)
    assert run(tx).item_id == broken


def test_a_stream_needs_no_order_of_decisions(tx: Connection) -> None:
    made = plan(tx, concurrency=2, max_attempts=1)
    put(tx, 2)
    a, b = [claim(tx, each) for each in head.feed(tx, made.id, serial=False)]
    for each in (a, b):
        assert finish.finish(tx, each, BROKEN) is State.FAILED
    retry(tx, b.item_id)
    skip(tx, a.item_id)
    assert order(tx) == [b.item_id]
    assert open_run(tx)


def test_retry_pressed_five_times_at_once_makes_one_attempt(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)
        plans.start(tx, "line", actor=ACTOR)
        item_id = bring(tx, State.FAILED)
    ready = Barrier(5)

    def press(_: int) -> str:
        with engine.connect() as tx:
            ready.wait(60)
            try:
                with tx.begin():
                    retry(tx, item_id)
            except NotAllowed as refusal:
                return refusal.state
        return "made"

    with ThreadPoolExecutor(5) as pool:
        answers = sorted(pool.map(press, range(5)))
    assert answers == ["made", *["waiting"] * 4]
    with engine.begin() as tx:
        assert end(tx) == item_id
        assert outcomes(tx, item_id) == [Outcome.FAILED, Outcome.SUCCEEDED]
        assert events(tx, item_id).count("retry") == 1
