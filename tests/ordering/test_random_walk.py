"""Threads that feed, run, move, add, postpone, cancel and decide on three plans at once: the rules hold, and starts keep the order."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import add, attempt, db, decision, finish, head, items, move, plans, reconcile, session
from ordering.decide import Ended
from ordering.errors import RelevoError
from ordering.finish import Verdict
from ordering.model import After, First, Last, NewItem, OnFailure, OnInterrupt, Place, State
from tests.conftest import Scale
from tests.ordering.acts import ACTOR, BROKEN, DONE, LONG_AGO, PROCESS, TOMORROW, assert_sound, order, plan, put

PLANS = {"halting": OnFailure.HALT, "going": OnFailure.CONTINUE, "again": OnFailure.HALT}
ENDS: list[Place] = [First(), Last()]
OUTCOMES: list[Ended] = [DONE, DONE, DONE, DONE, DONE, BROKEN]
OPEN = text("select id from relevo.item where settled_at is null order by random() limit 2")


def two(tx: Connection) -> tuple[int, int]:
    found = [*tx.execute(OPEN).scalars(), 0, 0]
    return found[0], found[1]


def unresolved(tx: Connection) -> int:
    found = "select id from relevo.item where state in ('failed', 'interrupted') order by random() limit 1"
    return tx.execute(text(found)).scalar_one_or_none() or 0


PERSON: list[Callable[[Connection, random.Random], object]] = [
    *[lambda tx, dice: add.add(tx, dice.choice(list(PLANS)), NewItem("noop"), actor=ACTOR, to=dice.choice(ENDS))] * 4,
    lambda tx, dice: move.move(tx, two(tx)[0], dice.choice([*ENDS, After(two(tx)[1])]), actor=ACTOR),
    lambda tx, dice: move.move(tx, two(tx)[0], First(), actor=ACTOR),
    lambda tx, dice: items.postpone(tx, two(tx)[0], dice.choice([TOMORROW, LONG_AGO, LONG_AGO]), actor=ACTOR),
    lambda tx, dice: items.cancel(tx, two(tx)[0], actor=ACTOR),
    lambda tx, dice: items.edit(tx, two(tx)[0], items.Edit(task=dice.choice(["noop", "other"])), actor=ACTOR),
    *[lambda tx, dice: dice.choice([decision.retry, decision.skip])(tx, unresolved(tx), actor=ACTOR)] * 6,
    lambda tx, dice: decision.retry(tx, two(tx)[0], actor=ACTOR),
    *[lambda tx, dice: plans.start(tx, dice.choice(list(PLANS)), actor=ACTOR)] * 3,
]


def worker(engine: Engine, dice: random.Random) -> None:
    """What one round of a feeder and a worker does: feed, claim, run to some end or die, each in its own transaction."""
    for plan_id, serial in db.transact(engine, head.ready):
        for fed in db.transact(engine, lambda tx, plan_id=plan_id, serial=serial: head.feed(tx, plan_id, serial=serial)):  # type: ignore[misc]
            with engine.begin() as tx:
                mine = tx.execute(session.INSERT, vars(PROCESS)).scalar_one()
                claimed = attempt.claim(tx, fed.id, session_id=mine)
            if claimed and dice.random() < 0.9:
                with engine.begin() as tx:
                    finish.finish_all(tx, [Verdict(each, dice.choice(OUTCOMES)) for each in claimed])
    reconcile.reconcile(engine, lambda _: False)


def person(engine: Engine, dice: random.Random) -> None:
    try:
        with engine.begin() as tx:
            dice.choice(PERSON)(tx, dice)
    except RelevoError:
        pass  # refused, which is right now and then: nothing was changed


@pytest.mark.timeout(600)
def test_whatever_people_and_workers_do_at_once_the_rules_hold(engine: Engine, scale: Scale) -> None:
    with engine.begin() as tx:
        for name, policy in PLANS.items():
            plan(tx, name, on_failure=policy, on_interrupt=OnInterrupt.REQUEUE if name == "again" else None)
            put(tx, 15, plan=name)
            plans.start(tx, name, actor=ACTOR)
    rounds = scale.rounds(2000, least=100)

    def act(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(rounds):
            (worker if seed % 2 else person)(engine, dice)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(act, range(4)))
    with engine.begin() as tx:
        assert_sound(tx)
        assert tx.execute(text("select count(*) from relevo.attempt")).scalar_one() > rounds / 10
        assert_never_two_at_once(tx)
    settle_all(engine)


def assert_never_two_at_once(tx: Connection) -> None:
    """From the history: no attempt of a serial plan began before the one before it had ended."""
    found = text("""
        select i.plan_id, a.started_at, a.ended_at from relevo.attempt a join relevo.item i on i.id = a.item_id
        order by i.plan_id, a.started_at, a.ended_at
    """)
    for one, other in pairwise(tx.execute(found).all()):
        assert one.plan_id != other.plan_id or one.ended_at <= other.started_at


def settle_all(engine: Engine) -> None:
    """Decide and run what is left: every item comes to an end, and every run drains."""
    for _ in range(1000):
        reconcile.reconcile(engine, lambda _: False)
        with engine.begin() as tx:
            for item_id in tx.execute(text("select id from relevo.item where state in ('failed', 'interrupted')")).scalars().all():
                decision.skip(tx, item_id, actor=ACTOR)
            tx.execute(text("update relevo.item set not_before = now() where state = 'postponed'"))
            head.wake_postponed(tx)
            unclaimed = "select id from relevo.dispatch where claimed_at is null and ended_at is null"
            for dispatch_id in tx.execute(text(unclaimed)).scalars().all():
                attempt.claim(tx, dispatch_id, session_id=tx.execute(session.INSERT, vars(PROCESS)).scalar_one())
        with engine.begin() as tx:
            for name in PLANS:
                plans.start(tx, name, actor=ACTOR)
            for plan_id, serial in head.ready(tx):
                for fed in head.feed(tx, plan_id, serial=serial):
                    claimed = attempt.claim(tx, fed.id, session_id=tx.execute(session.INSERT, vars(PROCESS)).scalar_one())
                    assert claimed
                    assert set(finish.finish_all(tx, [Verdict(each, DONE) for each in claimed])) == {State.SUCCEEDED}
            assert_sound(tx)
            if not tx.execute(text("select exists (select from relevo.item where settled_at is null or at_head)")).scalar_one():
                return
    raise AssertionError("items are left that nothing brings to an end")


def test_two_feeders_start_each_plans_items_in_its_order(engine: Engine, scale: Scale) -> None:
    lines, dice = {}, random.Random(0)
    with engine.begin() as tx:
        for name in PLANS:
            plan(tx, name)
            for _ in range(scale.rounds(200, least=20)):
                put(tx, plan=name, to=dice.choice(ENDS))
            lines[name] = order(tx, name)
            plans.start(tx, name, actor=ACTOR)

    running = text("select exists (select from relevo.run where ended_at is null)")

    def run(_: int) -> None:
        while db.transact(engine, lambda tx: tx.execute(running).scalar_one()):
            for plan_id, serial in db.transact(engine, head.ready):
                with engine.begin() as tx:
                    fed = head.feed(tx, plan_id, serial=serial)
                for each in fed:
                    with engine.begin() as tx:
                        claimed = attempt.claim(tx, each.id, session_id=tx.execute(session.INSERT, vars(PROCESS)).scalar_one())
                    with engine.begin() as tx:
                        finish.finish_all(tx, [Verdict(each, DONE) for each in claimed])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, range(2)))
    with engine.begin() as tx:
        assert_sound(tx)
        assert_never_two_at_once(tx)
        started = "select i.id from relevo.attempt a join relevo.item i on i.id = a.item_id where i.plan_id = :plan order by a.started_at"
        for name, line in lines.items():
            assert list(tx.execute(text(started), {"plan": plans.get(tx, name).id}).scalars()) == line
