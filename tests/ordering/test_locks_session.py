"""A process that comes back, the reconciler and a person, two at once: one of them decides, the other sees it."""

from collections.abc import Callable

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import attempt, dead_decision, decision, head, plans, reconcile, session
from ordering.dead_decision import Verb
from ordering.errors import NotAllowed
from ordering.model import Claimed, OnInterrupt, State
from tests.ordering.acts import ACTOR, assert_sound, dead_session, lose, plan, put, run, state
from tests.ordering.rivals import race


def lost(engine: Engine, policy: OnInterrupt) -> tuple[Claimed, int]:
    with engine.begin() as tx:
        plan(tx, on_interrupt=policy)
        plans.start(tx, "line", actor=ACTOR)
        put(tx)
        claimed = run(tx)
        lose(tx, claimed)
        session_id = tx.execute(text("select session_id from relevo.dispatch where id = :id"), {"id": claimed.dispatch_id}).scalar_one()
        return claimed, session_id


def retake(session_id: int) -> Callable[[Connection], set[int] | None]:
    def verb(tx: Connection) -> set[int] | None:
        found = session.retake(tx, session_id)
        tx.execute(text("select pg_advisory_unlock_all()"))  # the test's process ends here
        return found

    return verb


def test_a_process_that_comes_back_behind_a_requeue_has_lost_its_item(engine: Engine) -> None:
    claimed, mine = lost(engine, OnInterrupt.REQUEUE)

    def requeue(tx: Connection) -> None:
        assert tx.execute(reconcile.TRY_LOCK, {"id": mine}).scalar_one()
        reconcile.close(tx, mine, proved=True)

    assert race(engine, requeue, retake(mine)) == set()
    with engine.begin() as tx:
        assert state(tx, claimed.item_id) is State.WAITING
    with engine.begin() as tx:
        assert_sound(tx)


def test_a_decision_behind_a_process_that_comes_back_is_refused(engine: Engine) -> None:
    claimed, mine = lost(engine, OnInterrupt.HOLD)

    def retry(tx: Connection) -> str:
        with pytest.raises(NotAllowed) as refusal:
            decision.retry(tx, claimed.item_id, actor=ACTOR)
        return str(refusal.value)

    assert "is running" in race(engine, retake(mine), retry)
    with engine.begin() as tx:
        assert_sound(tx)


def test_a_process_that_comes_back_behind_a_decision_has_lost_its_item(engine: Engine) -> None:
    claimed, mine = lost(engine, OnInterrupt.HOLD)
    assert race(engine, lambda tx: decision.skip(tx, claimed.item_id, actor=ACTOR), retake(mine)) == set()
    with engine.begin() as tx:
        assert state(tx, claimed.item_id) is State.SKIPPED
        assert_sound(tx)


def test_without_proof_a_held_item_stays_its_processs_own_after_the_grace_time(engine: Engine) -> None:
    claimed, mine = lost(engine, OnInterrupt.HOLD)
    with engine.begin() as tx:
        reconcile.close(tx, mine, proved=False)
        assert session.unlocked(tx) == []
    with engine.begin() as tx:
        assert retake(mine)(tx) == {claimed.item_id}
        assert state(tx, claimed.item_id) is State.RUNNING
        assert_sound(tx)


def test_a_process_that_comes_back_behind_a_decision_on_many_leaves_the_history(engine: Engine) -> None:
    with engine.begin() as tx:
        made = plan(tx, concurrency=2, on_interrupt=OnInterrupt.HOLD)
        (item_id,) = put(tx)
        (fed,) = head.feed(tx, made.id, serial=False)
        mine = dead_session(tx)
        (claimed,) = attempt.claim(tx, fed.id, session_id=mine)
        lose(tx, claimed, closed=False)
        reconcile.close(tx, mine, proved=False)
    assert race(engine, lambda tx: dead_decision.decide(tx, Verb.RETRY, [item_id], actor=ACTOR), retake(mine)) == set()
    with engine.begin() as tx:
        assert state(tx, item_id) is State.WAITING
        assert_sound(tx)
