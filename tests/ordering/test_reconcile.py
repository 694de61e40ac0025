"""Reconciling: what has no process behind it is marked at once, and fed again only with proof or after the grace time."""

from uuid import UUID

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import attempt, items, plans, session
from ordering.model import Claimed, OnFailure, OnInterrupt, Outcome, State
from ordering.reconcile import excuse, interrupt, reconcile
from ordering.session import Session, unlocked
from tests.ordering.acts import ACTOR, PROCESS, assert_sound, events, feed, outcomes, plan, put, run, state


def gone(_: Session) -> bool:
    return False


def alive(_: Session) -> bool:
    return True


def unknown(_: Session) -> None:
    return None


def serial(engine: Engine, **settings: object) -> Claimed:
    """A started plan whose first of two items runs in a process that is gone."""
    with engine.begin() as tx:
        plan(tx, "line", **settings)
        plans.start(tx, "line", actor=ACTOR)
        put(tx, 2)
        return run(tx)


def seen(engine: Engine, item_id: int) -> State:
    with engine.begin() as tx:
        assert_sound(tx)
        return state(tx, item_id)


def age_loss(engine: Engine, seconds: float) -> None:
    with engine.begin() as tx:
        tx.execute(text("update relevo.session set lost_at = lost_at - make_interval(secs => :s)"), {"s": seconds})


def lost_for(engine: Engine) -> float:
    """How many seconds ago the loss was seen."""
    with engine.begin() as tx:
        found = "select cast(date_part('epoch', now() - lost_at) as float) from relevo.session where lost_at is not null"
        return float(tx.execute(text(found)).scalar_one())


def sessions(engine: Engine) -> list[Session]:
    with engine.begin() as tx:
        return unlocked(tx)


@pytest.mark.parametrize("policy", list(OnFailure))
def test_what_was_lost_is_marked_with_the_evidence_and_keeps_its_place(engine: Engine, policy: OnFailure) -> None:
    claimed = serial(engine, on_failure=policy)
    assert reconcile(engine, gone) == 1
    with engine.begin() as tx:
        item = items.get(tx, claimed.item_id)
        assert (item.state, item.at_head, item.attempts, item.tries) == (State.INTERRUPTED, True, 1, 1)
        assert item.error
        for part in ("process lost", "host host", "process 4242", "worker worker", "open since 20"):
            assert part in item.error
        assert outcomes(tx, claimed.item_id) == [Outcome.INTERRUPTED]
        after = tx.execute(text("select after from relevo.event where action = 'interrupt'")).scalar_one()
        assert (after["host"], after["pid"]) == ("host", 4242)
        assert after["since"]
        assert feed(tx) is None
        assert_sound(tx)
    assert reconcile(engine, gone) == 0
    assert sessions(engine) == []


def test_a_session_whose_lock_is_held_is_left_alone(engine: Engine) -> None:
    with engine.connect() as worker, engine.begin() as tx:
        with worker.begin():
            mine = session.open_(worker, PROCESS)
        plan(tx)
        plans.start(tx, "line", actor=ACTOR)
        put(tx)
        fed = feed(tx)
        assert fed
        attempt.claim(tx, fed.id, session_id=mine)
        tx.commit()
        assert reconcile(engine, gone) == 0
        worker.invalidate()  # the connection breaks
        with engine.connect() as watcher:
            wait_until_free(watcher, mine)
        assert reconcile(engine, unknown) == 1


def wait_until_free(tx: Connection, session_id: int) -> None:
    """Until the server has noticed that the session's connection is gone; bounded by lock_timeout."""
    tx.execute(text("select pg_advisory_xact_lock(:class, :id)"), {"class": session.LOCK_CLASS, "id": session_id})
    tx.rollback()


@pytest.mark.parametrize("proof", [True, False])
def test_a_requeue_waits_for_proof_or_five_seconds(engine: Engine, proof: bool) -> None:
    claimed = serial(engine, on_interrupt=OnInterrupt.REQUEUE)
    reconcile(engine, gone if proof else unknown)
    if not proof:
        for _ in range(2):
            assert seen(engine, claimed.item_id) is State.INTERRUPTED or lost_for(engine) > 5
            age_loss(engine, 2.4)
            reconcile(engine, unknown)
        age_loss(engine, 0.3)
        reconcile(engine, unknown)
    assert seen(engine, claimed.item_id) is State.WAITING
    with engine.begin() as tx:
        again = run(tx)
        assert (again.item_id, again.attempt, again.tries) == (claimed.item_id, 2, 1)
        assert events(tx, claimed.item_id)[-1] == "requeue"


def test_what_is_proved_alive_keeps_its_items_and_is_marked_once(engine: Engine) -> None:
    claimed = serial(engine, on_interrupt=OnInterrupt.REQUEUE)
    assert reconcile(engine, alive) == 1
    age_loss(engine, 3600)
    assert reconcile(engine, alive) == 0
    assert seen(engine, claimed.item_id) is State.INTERRUPTED
    assert len(sessions(engine)) == 1
    with engine.begin() as tx:
        assert events(tx, claimed.item_id).count("interrupt") == 1


def test_a_poison_pill_ends_after_its_tries(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx, on_interrupt=OnInterrupt.REQUEUE, max_attempts=3)
        plans.start(tx, "line", actor=ACTOR)
        (item_id,) = put(tx)
    for number in range(1, 4):
        with engine.begin() as tx:
            assert run(tx).attempt == number
        reconcile(engine, gone)
        assert seen(engine, item_id) is (State.WAITING if number < 3 else State.INTERRUPTED)
    with engine.begin() as tx:
        assert feed(tx) is None
        assert outcomes(tx, item_id) == [Outcome.INTERRUPTED] * 3


def test_a_shutdown_uses_no_try(engine: Engine) -> None:
    claimed = serial(engine, on_interrupt=OnInterrupt.REQUEUE, max_attempts=1)
    (mine,) = sessions(engine)
    with engine.begin() as tx:
        interrupt(tx, mine, reason="shutdown", counts=False, dispatch_id=UUID(int=0))
        assert state(tx, claimed.item_id) is State.RUNNING
        interrupt(tx, mine, reason="shutdown", counts=False, dispatch_id=claimed.dispatch_id)
        assert (items.get(tx, claimed.item_id).attempts, items.get(tx, claimed.item_id).tries) == (1, 0)
    reconcile(engine, gone)
    assert seen(engine, claimed.item_id) is State.WAITING


def test_a_process_killed_at_its_time_limit_has_failed(engine: Engine) -> None:
    claimed = serial(engine, on_interrupt=OnInterrupt.REQUEUE)
    with engine.begin() as tx:
        attempt.announce_cut(tx, claimed.dispatch_id, "TimeLimitExceeded(60 s)")
    reconcile(engine, gone)
    assert seen(engine, claimed.item_id) is State.FAILED
    with engine.begin() as tx:
        item = items.get(tx, claimed.item_id)
        assert (item.error, item.at_head, item.tries) == ("TimeLimitExceeded(60 s)", True, 1)
        assert outcomes(tx, claimed.item_id) == [Outcome.FAILED]


def test_a_cancelled_item_frees_its_place_when_its_process_is_gone(engine: Engine) -> None:
    claimed = serial(engine)
    with engine.begin() as tx:
        items.cancel(tx, claimed.item_id, actor=ACTOR)
        assert feed(tx) is None
    reconcile(engine, alive)
    with engine.begin() as tx:
        assert feed(tx) is None
    reconcile(engine, gone)
    with engine.begin() as tx:
        assert state(tx, claimed.item_id) is State.CANCELLED
        assert run(tx).item_id != claimed.item_id
        assert_sound(tx)


def test_a_session_with_nothing_to_do_is_closed_and_counted_once(engine: Engine) -> None:
    with engine.begin() as tx:
        tx.execute(session.INSERT, vars(PROCESS))
    assert reconcile(engine, unknown) == 1
    assert reconcile(engine, unknown) == 0
    age_loss(engine, 5.1)
    reconcile(engine, unknown)
    assert sessions(engine) == []


@pytest.mark.parametrize("first", ["nobody", "who sees it lost", "who sees it gone"])
def test_a_process_that_ended_itself_costs_no_try_whoever_sees_it_first(engine: Engine, first: str) -> None:
    claimed = serial(engine, on_interrupt=OnInterrupt.REQUEUE, max_attempts=1)
    (mine,) = sessions(engine)
    if first != "nobody":
        reconcile(engine, gone if first == "who sees it gone" else unknown)
        assert seen(engine, claimed.item_id) is State.INTERRUPTED
    for _ in range(2):
        with engine.begin() as tx:
            known = session.last_of(tx, PROCESS, PROCESS.pid)
            assert known is not None
            assert known.id == mine.id
            excuse(tx, known)
    assert seen(engine, claimed.item_id) is State.WAITING
    with engine.begin() as tx:
        item = items.get(tx, claimed.item_id)
        assert (item.attempts, item.tries) == (1, 0)
        assert outcomes(tx, claimed.item_id) == [Outcome.INTERRUPTED]
        assert run(tx).item_id == claimed.item_id


def test_a_try_of_another_process_is_not_given_back(engine: Engine) -> None:
    claimed = serial(engine, on_interrupt=OnInterrupt.REQUEUE)
    (mine,) = sessions(engine)
    reconcile(engine, gone)
    with engine.begin() as tx:
        assert run(tx).item_id == claimed.item_id
    reconcile(engine, gone)
    with engine.begin() as tx:
        assert items.get(tx, claimed.item_id).tries == 2
        excuse(tx, mine)
        assert items.get(tx, claimed.item_id).tries == 1
        assert session.last_of(tx, PROCESS, 1) is None
