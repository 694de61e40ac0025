"""Plan, dispatch, item: no verb takes its locks in another order, seen from all of them at once with a short deadlock_timeout."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, Engine, make_url, text

from ordering import add, attempt, clock, db, dead_decision, decision, head, items, move, plans, reconcile, session
from ordering.dead import Which
from ordering.dead_decision import Verb
from ordering.decide import Ended
from ordering.errors import RelevoError
from ordering.finish import Verdict, finish_all
from ordering.model import First, Last, NewItem, OnInterrupt, Place, Plan
from tests.conftest import Scale
from tests.ordering.acts import ACTOR, BROKEN, DONE, LONG_AGO, PROCESS, TOMORROW, assert_sound, plan

PLANS = ("serial", "other", "stream")
ENDS: list[Ended] = [DONE, DONE, BROKEN]
PLACES: list[Place] = [First(), Last()]


def some_item(tx: Connection, dice: random.Random) -> int:
    found = list(tx.execute(text("select id from relevo.item where settled_at is null order by id desc limit 30")).scalars())
    return dice.choice(found) if found else 0


def some_plan(tx: Connection, dice: random.Random) -> Plan:
    return plans.get(tx, dice.choice(PLANS))


def work(tx: Connection, dice: random.Random) -> None:
    """Feed, and bring what was fed to some end, as a worker would in three transactions."""
    chosen = some_plan(tx, dice)
    fed = head.feed(tx, chosen.id, serial=chosen.serial)
    head.mark_published(tx, [each.id for each in fed])


def claim(tx: Connection, dice: random.Random) -> None:
    found = tx.execute(text("select id from relevo.dispatch where ended_at is null order by random() limit 1")).scalar_one_or_none()
    if found is not None:
        attempt.claim(tx, found, session_id=tx.execute(session.INSERT, vars(PROCESS)).scalar_one())


def end(tx: Connection, dice: random.Random) -> None:
    claimed = "select id from relevo.dispatch where claimed_at is not null and ended_at is null order by random() limit 1"
    found = tx.execute(text(claimed)).scalar_one_or_none()
    runs = attempt.claimed(tx, found) if found is not None else []
    if runs:
        finish_all(tx, [Verdict(run, dice.choice(ENDS)) for run in runs[: dice.randint(1, len(runs))]])


def start(tx: Connection, dice: random.Random) -> None:
    plans.start(tx, dice.choice(PLANS), actor=ACTOR)


def decide_letters(tx: Connection, verb: Verb) -> None:
    dead_decision.decide_batch(tx, verb, Which(), until=clock.now(tx), after=None, actor=ACTOR, note="n")


VERBS: list[Callable[[Connection, random.Random], object]] = [
    work,
    work,
    claim,
    claim,
    end,
    end,
    start,
    lambda tx, dice: add.add(tx, dice.choice(PLANS), NewItem("noop"), actor=ACTOR),
    lambda tx, dice: add.add_many(tx, dice.choice(PLANS), [NewItem("noop")] * 3, actor=ACTOR, to=First()),
    lambda tx, dice: move.move(tx, some_item(tx, dice), dice.choice(PLACES), actor=ACTOR),
    lambda tx, dice: items.edit(tx, some_item(tx, dice), items.Edit(title="t", task=dice.choice(["noop", "other"])), actor=ACTOR),
    lambda tx, dice: items.postpone(tx, some_item(tx, dice), dice.choice([TOMORROW, LONG_AGO]), actor=ACTOR),
    lambda tx, dice: items.cancel(tx, some_item(tx, dice), actor=ACTOR),
    lambda tx, dice: decision.retry(tx, some_item(tx, dice), actor=ACTOR),
    lambda tx, dice: decision.skip(tx, some_item(tx, dice), actor=ACTOR),
    lambda tx, dice: dead_decision.decide_batch(
        tx, dice.choice(list(Verb)), Which(), until=clock.now(tx), after=None, actor=ACTOR, note="n"
    ),
    lambda tx, dice: dead_decision.decide(tx, Verb.RETRY, [some_item(tx, dice) for _ in range(3)], actor=ACTOR),
    lambda tx, dice: plans.pause(tx, dice.choice(PLANS), actor=ACTOR),
    lambda tx, dice: head.wake_postponed(tx),
    lambda tx, dice: head.take_unsent(tx, {}),
]


@pytest.mark.timeout(300)
def test_all_verbs_at_once_meet_no_deadlock(database_url: str, engine: Engine, scale: Scale) -> None:
    with engine.begin() as tx:
        for name in PLANS:
            plan(tx, name, concurrency=4 if name == "stream" else 1, on_interrupt=OnInterrupt.REQUEUE, max_attempts=2)
            add.add_many(tx, name, [NewItem("noop")] * 20, actor=ACTOR)
    rounds = scale.rounds(3000, least=150)
    hasty = db.engine(database_url, settings={"deadlock_timeout": "50ms"})

    def act(seed: int) -> int:
        dice, done = random.Random(seed), 0
        for turn in range(rounds):
            if turn % 20 == 19:
                reconcile.reconcile(hasty, lambda _: dice.choice([True, False, None]))
            try:
                with hasty.begin() as tx:
                    dice.choice(VERBS)(tx, dice)
                    done += 1
            except RelevoError:
                continue  # refused, which is right now and then
        return done

    try:
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(act, range(4)))
    finally:
        hasty.dispose()
    assert min(done) > rounds / 4
    with engine.begin() as tx:
        assert_sound(tx)
        found = "select deadlocks from pg_stat_database where datname = :name"
        assert tx.execute(text(found), {"name": make_url(database_url).database}).scalar_one() == 0
