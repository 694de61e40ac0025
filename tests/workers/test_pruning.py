"""The feeder's pruner: it goes on by itself, whatever one look met, and ends when it is told to."""

import logging
import time
from collections.abc import Callable

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import plans, prune
from ordering.model import State
from tests.ordering.acts import ACTOR, bring, plan
from workers.pruning import Pruner


def until(found: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def settle_long_ago(tx: Connection, count: int) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    for _ in range(count):
        bring(tx, State.CANCELLED)
    tx.execute(text("update relevo.item set settled_at = settled_at - interval '31 days'"))


def test_it_prunes_what_is_old_and_ends(engine: Engine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with engine.begin() as tx:
        settle_long_ago(tx, 5)
    caplog.set_level(logging.INFO)
    looks = 0
    due = prune.due

    def at_first_broken(tx: Connection) -> list[prune.Sweep]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("broken")
        if looks == 2:
            tx.execute(text("select 1 from relevo.nowhere"))
        return due(tx)

    monkeypatch.setattr(prune, "due", at_first_broken)

    def left() -> int:
        with engine.begin() as tx:
            return int(tx.execute(text("select count(*) from relevo.item")).scalar_one())

    with Pruner(engine, every=0.05) as pruner:
        until(lambda: left() == 0)
        until(lambda: "Pruned 5 rows older than their plans keep them." in caplog.text)
    until(lambda: not pruner._thread.is_alive())
    seen = looks
    assert [record.levelname for record in caplog.records if "Pruning failed" in record.getMessage()] == ["ERROR", "ERROR"]
    time.sleep(0.2)
    assert looks == seen, "it looks no more once it is told to end"


def test_it_ends_in_the_middle_of_much(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine.begin() as tx:
        plan(tx)
    monkeypatch.setattr(prune, "due", lambda tx: [prune.Sweep("item", 1)])
    steps = 0

    def endless(tx: Connection, sweep: prune.Sweep) -> prune.Step:
        nonlocal steps
        steps += 1
        return prune.Step(1, sweep)

    monkeypatch.setattr(prune, "step", endless)
    with Pruner(engine) as pruner:
        until(lambda: steps > 3)
    until(lambda: not pruner._thread.is_alive())
    seen = steps
    time.sleep(0.2)
    assert steps == seen
