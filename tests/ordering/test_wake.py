"""Waking changes a plan's line, so it waits its turn: not while somebody else holds the plan."""

from sqlalchemy import Engine, text

from ordering import head, plans
from tests.ordering.acts import order, plan, put


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
