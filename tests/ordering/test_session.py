"""A session: its lock, and the way back of a living process whose connection broke."""

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import attempt, finish, items, plans, session
from ordering.model import Claimed, OnInterrupt, State
from ordering.reconcile import reconcile
from ordering.session import Session
from tests.ordering.acts import ACTOR, DONE, PROCESS, assert_sound, claim, events, feed, plan, put, run, state


def gone(_: Session) -> bool:
    return False


def alive(_: Session) -> bool:
    return True


def running(engine: Engine, policy: OnInterrupt = OnInterrupt.HOLD) -> tuple[Claimed, int]:
    """What the process of a session runs whose lock is free, and that session."""
    with engine.begin() as tx:
        plan(tx, on_interrupt=policy)
        plans.start(tx, "line", actor=ACTOR)
        put(tx)
        claimed = run(tx)
        (mine,) = tx.execute(text("select id from relevo.session")).scalars()
        return claimed, mine


def test_a_session_is_recorded_and_its_lock_held_as_long_as_its_connection_lives(engine: Engine) -> None:
    with engine.connect() as worker, engine.connect() as other:
        with worker.begin():
            mine = session.open_(worker, PROCESS)
        assert not free(other, mine)
        worker.rollback()
        assert not free(other, mine)
        assert session.unlocked(other) == []
        worker.invalidate()
        other.rollback()
        other.execute(text("select pg_advisory_xact_lock(:class, :id)"), {"class": session.LOCK_CLASS, "id": mine})
        other.rollback()
        (known,) = session.unlocked(other)
        assert (known.id, known.process, known.lost_at) == (mine, PROCESS, None)


def free(tx: Connection, session_id: int) -> bool:
    lock = text("select pg_try_advisory_xact_lock(:class, :id)")
    return bool(tx.execute(lock, {"class": session.LOCK_CLASS, "id": session_id}).scalar_one())


def test_a_living_process_takes_its_session_and_what_is_unresolved_again(engine: Engine) -> None:
    claimed, mine = running(engine)
    assert reconcile(engine, alive) == 1
    with engine.connect() as worker:
        with worker.begin():
            assert session.retake(worker, mine) == {claimed.item_id}
        with engine.begin() as tx:
            item = items.get(tx, claimed.item_id)
            assert (item.state, item.at_head, item.attempts, item.tries, item.error) == (State.RUNNING, True, 0, 0, None)
            assert events(tx, claimed.item_id)[-1] == "retake"
            assert_sound(tx)
        assert reconcile(engine, gone) == 0
        worker.invalidate()


@pytest.mark.parametrize("policy", list(OnInterrupt))
def test_what_was_decided_meanwhile_is_not_taken_again(engine: Engine, policy: OnInterrupt) -> None:
    _, mine = running(engine, policy)
    reconcile(engine, gone)
    with engine.connect() as worker:
        with worker.begin():
            assert session.retake(worker, mine) == set()
            assert worker.execute(text("select closed_at is null and lost_at is null from relevo.session")).scalar_one()
            item_id = worker.execute(text("select id from relevo.item")).scalar_one()
            assert state(worker, item_id) is (State.WAITING if policy is OnInterrupt.REQUEUE else State.INTERRUPTED)
            assert_sound(worker)
        worker.invalidate()


def test_only_the_interrupted_dispatch_itself_is_restored(engine: Engine) -> None:
    first, _ = running(engine, OnInterrupt.REQUEUE)
    reconcile(engine, gone)
    with engine.begin() as tx:
        fed = feed(tx)
        assert fed
        second = claim(tx, fed)
    reconcile(engine, alive)
    with engine.begin() as tx:
        assert not attempt.restore(tx, first.item_id, first.dispatch_id)
        assert attempt.restore(tx, second.item_id, second.dispatch_id)
        assert not attempt.restore(tx, second.item_id, second.dispatch_id)
        item = items.get(tx, first.item_id)
        assert (item.state, item.attempts, item.tries) == (State.RUNNING, 1, 1)
        assert_sound(tx)


def test_a_result_after_the_process_was_proved_gone_is_late(engine: Engine) -> None:
    claimed, _ = running(engine)
    reconcile(engine, gone)
    with engine.begin() as tx:
        old = items.get(tx, claimed.item_id)
        assert finish.finish(tx, claimed, DONE) is None
        assert items.get(tx, claimed.item_id) == old
        assert events(tx, claimed.item_id)[-1] == "fence"
        assert_sound(tx)


def test_two_connections_of_their_own_are_not_pooled(engine: Engine) -> None:
    with engine.connect() as first, engine.connect() as second:
        assert not session.is_pooled(first, second)
        assert session.is_pooled(first, first)
