"""A foreign transaction that emits may stay open: it holds up nobody, deadlocks with nobody, and wakes a feeder only where that helps."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import add, facts, head, items, move, plans, subscriptions
from ordering.errors import FactKeyConflict
from ordering.model import First, Last, NewItem
from ordering.subscriptions import Subscription
from tests.conftest import Scale
from tests.ordering.acts import ACTOR, order
from tests.ordering.ear import listening, notified
from tests.ordering.rivals import race

PLAN = "hearing"


@pytest.fixture
def heard(engine: Engine) -> Engine:
    """Two tasks hear `a` and `b` in one stream."""
    with engine.begin() as tx:
        for type in ("a", "b"):
            subscriptions.subscribe_all(tx, [Subscription(type, "draw", PLAN), Subscription(type, "notify", PLAN)], actor=ACTOR)
    return engine


@contextmanager
def hurried(engine: Engine) -> Iterator[Connection]:
    """A transaction that fails rather than wait for a lock; committed at the end."""
    with engine.begin() as tx:
        tx.execute(text("set local lock_timeout = '5s'"))
        yield tx


def feed(tx: Connection) -> None:
    assert head.feed(tx, plans.get(tx, PLAN).id, serial=False)


def move_to(place: First | Last) -> Callable[[Connection], None]:
    def act(tx: Connection) -> None:
        move.move(tx, order(tx, PLAN)[1], place, actor=ACTOR)

    return act


ACTS: dict[str, Callable[[Connection], object]] = {
    "another emitter": lambda tx: facts.emit(tx, "a", {}),
    "one of the other type": lambda tx: facts.emit(tx, "b", {}, key=str(time.monotonic())),
    "feed": feed,
    "add": lambda tx: add.add(tx, PLAN, NewItem("noop"), actor=ACTOR),
    "bulk add": lambda tx: add.add_many(tx, PLAN, [NewItem("noop")] * 100, actor=ACTOR),
    "add in front": lambda tx: add.add(tx, PLAN, NewItem("noop"), actor=ACTOR, to=First()),
    "move to the front": move_to(First()),
    "move to the end": move_to(Last()),
    "cancel": lambda tx: items.cancel(tx, order(tx, PLAN)[-1], actor=ACTOR),
    "pause": lambda tx: plans.pause(tx, PLAN, actor=ACTOR),
    "start": lambda tx: plans.start(tx, PLAN, actor=ACTOR),
    "a worker that starts": lambda tx: subscriptions.subscribe_all(tx, [Subscription("a", "draw", PLAN)], actor=ACTOR),
    "one more subscription": lambda tx: subscriptions.subscribe(tx, Subscription("a", str(time.monotonic()), PLAN), actor=ACTOR),
    "unsubscribe": lambda tx: subscriptions.unsubscribe(tx, "b", "notify", actor=ACTOR),
}


def test_a_transaction_that_emits_and_stays_open_holds_up_nobody(heard: Engine, scale: Scale) -> None:
    with heard.begin() as tx:
        for _ in range(20):
            facts.emit(tx, "a", {})
    with heard.connect() as stays, stays.begin():
        for number in range(5):
            facts.emit(stays, "ab"[number % 2], {"n": number}, key=str(number))
        for name, act in ACTS.items():
            with hurried(heard) as tx:
                begun = time.monotonic()
                act(tx)
            assert time.monotonic() - begun < 20, name
        until, rounds = time.monotonic() + scale.seconds(30, least=1.0), 0
        while not rounds or time.monotonic() < until:
            with hurried(heard) as tx:
                ACTS["another emitter"](tx)
            with hurried(heard) as tx:
                head.feed(tx, plans.get(tx, PLAN).id, serial=False)
            rounds += 1
    with heard.begin() as tx:
        assert tx.execute(text("select count(*) from relevo.fact")).scalar_one() == 20 + 5 + 2 + rounds


def test_two_that_emit_in_opposite_order_do_not_deadlock(heard: Engine) -> None:
    with hurried(heard) as one, hurried(heard) as other:
        for _ in range(3):
            facts.emit(one, "a", {})
            facts.emit(other, "b", {})
            facts.emit(one, "b", {})
            facts.emit(other, "a", {})
    with heard.begin() as tx:
        assert len(facts.facts(tx).facts) == 12
        assert len(order(tx, PLAN)) == 24


def test_the_same_key_at_once_is_one_fact(heard: Engine) -> None:
    made = []

    def emit(tx: Connection) -> int:
        made.append(facts.emit(tx, "a", {"id": 1}, key="k"))
        return made[-1]

    assert race(heard, emit, emit) == made[0]
    with heard.begin() as tx:
        assert len(order(tx, PLAN)) == 2


def test_the_same_key_with_other_data_at_once_is_refused(heard: Engine) -> None:
    def other(tx: Connection) -> int:
        with pytest.raises(FactKeyConflict):
            facts.emit(tx, "a", {"id": 2}, key="k")
        tx.rollback()
        return 1

    assert race(heard, lambda tx: facts.emit(tx, "a", {"id": 1}, key="k"), other) == 1


@pytest.fixture
def told(heard: Engine) -> Iterator[Callable[[], list[str]]]:
    """What feeders were told since the last call."""
    with listening(heard) as ear:
        yield lambda: notified(heard, ear)


def test_a_feeder_is_woken_only_where_nothing_is_out(heard: Engine, told: Callable[[], list[str]]) -> None:
    with heard.begin() as tx:
        plan_id = plans.get(tx, PLAN).id
        facts.emit(tx, "nobody.hears", {})
    assert told() == []
    with heard.begin() as tx:
        for _ in range(10):
            facts.emit(tx, "a", {})
        assert told() == [], "before the commit"
    assert told() == [str(plan_id)], "one for all of them"
    with heard.begin() as tx:
        feed(tx)
    with heard.begin() as tx:
        facts.emit(tx, "a", {})
    assert told() == [], "what is out feeds when it ends"
    with heard.begin() as tx:
        tx.execute(text("update relevo.dispatch set ended_at = now()"))
        tx.execute(text("update relevo.item set state = 'succeeded', settled_at = now() where state = 'dispatched'"))
    with heard.begin() as tx:
        facts.emit(tx, "a", {})
    assert told() == [str(plan_id)]
