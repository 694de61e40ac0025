"""A step's record and a decision at once: whoever is second waits, and sees what the first has committed."""

import pytest
from sqlalchemy import Connection, Engine

from ordering import decision, items, plans, steps
from ordering.model import Claimed, StepKind
from ordering.steps import Step
from tests.ordering.acts import ACTOR, lose, plan, put, run
from tests.ordering.rivals import race

DONE = Step(1, "a", StepKind.STEP, True, "1")


@pytest.fixture
def claimed(engine: Engine) -> Claimed:
    with engine.begin() as tx:
        plan(tx)
        put(tx)
        plans.start(tx, "line", actor=ACTOR)
        return run(tx)


def recorded(engine: Engine, claimed: Claimed) -> list[Step]:
    with engine.begin() as tx:
        return steps.recorded(tx, claimed.item_id)


def test_a_step_that_comes_after_a_cancel_is_not_recorded(engine: Engine, claimed: Claimed) -> None:
    def cancel(tx: Connection) -> None:
        items.cancel(tx, claimed.item_id, actor=ACTOR)

    assert race(engine, cancel, lambda tx: steps.record(tx, claimed, DONE, took=0)) is False
    assert recorded(engine, claimed) == []


def test_whoever_skips_the_item_meanwhile_finds_the_step_recorded(engine: Engine, claimed: Claimed) -> None:
    def skip(tx: Connection) -> None:
        lose(tx, claimed)
        decision.skip(tx, claimed.item_id, actor=ACTOR)

    race(engine, lambda tx: steps.record(tx, claimed, DONE, took=0), skip)
    assert recorded(engine, claimed) == [DONE]
