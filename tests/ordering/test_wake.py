"""Waking changes a plan's line, so it waits its turn: not while somebody else holds the plan."""

from collections.abc import Callable
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, text

from ordering import add, facts, head, plan_edit, plans, subscriptions
from ordering.model import NewItem
from ordering.subscriptions import Subscription
from tests.ordering.acts import ACTOR, claim, lose, order, plan, put
from tests.ordering.ear import listening, notified


def test_a_plan_that_somebody_holds_is_woken_later(engine: Engine) -> None:
    ids = {}
    with engine.begin() as tx:
        for name in ("busy", "free"):
            ids[name] = plan(tx, name).id
            put(tx, 2, plan=name)
        tx.execute(text("update relevo.item set state = 'postponed', not_before = now()"))
    with engine.begin() as holder:
        plans.lock(holder, ids["busy"])
        with engine.begin() as tx:
            assert head.wake_postponed(tx) == {ids["free"]}
            assert (len(order(tx, "busy")), len(order(tx, "free"))) == (0, 2)
    with engine.begin() as tx:
        assert head.wake_postponed(tx) == {ids["busy"]}
        assert len(order(tx, "busy")) == 2


def tells(engine: Engine, ear: psycopg.Connection[Any], act: Callable[[Connection], object]) -> bool:
    """Whether the feeders are told of what `act` does."""
    notified(engine, ear)
    with engine.begin() as tx:
        act(tx)
    return bool(notified(engine, ear))


def test_what_waits_for_a_person_only_keeps_no_feeder_asleep(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx, "stream", concurrency=2)
        subscriptions.subscribe(tx, Subscription("it.happened", "noop", "stream"), actor=ACTOR)
    acts = (lambda tx: add.add(tx, "stream", NewItem("noop"), actor=ACTOR), lambda tx: facts.emit(tx, "it.happened", {}))
    with listening(engine) as ear:
        assert [tells(engine, ear, act) for act in acts] == [True, True], "nothing is out"
        with engine.begin() as tx:
            runs = [run for each in head.feed(tx, plans.get(tx, "stream").id, serial=False) for run in [claim(tx, each)]]
        assert [tells(engine, ear, act) for act in acts] == [False, False], "two are out"
        with engine.begin() as tx:
            for run in runs:
                lose(tx, run, closed=False)
        assert [tells(engine, ear, act) for act in acts] == [True, True], "two are undecided"


def test_a_stream_that_has_room_now_is_fed_at_once(engine: Engine) -> None:
    with engine.begin() as tx:
        made = plan(tx, "stream", concurrency=2)
    with listening(engine) as ear:
        assert tells(engine, ear, lambda tx: plan_edit.edit(tx, made, {"concurrency": 3}, actor=ACTOR))
