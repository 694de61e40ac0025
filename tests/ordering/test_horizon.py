"""The horizon of the trail: nothing that comes late is passed over, and a gap that stays empty holds nothing up."""

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import changes
from ordering.horizon import PATIENCE, Horizon
from tests.ordering.acts import ACTOR

RECORD = text("insert into relevo.event (actor, action) values (:actor, 'start') returning id")


def test_what_is_whole_is_passed_at_once() -> None:
    horizon = Horizon([5, 4, 6], low=3)
    assert (horizon.low, horizon.told, horizon.needs_mark) == (6, set(), False)
    horizon.take([7, 8], oldest=100, at=0)
    assert horizon.low == 8


def test_a_gap_is_passed_when_everybody_who_could_fill_it_has_ended() -> None:
    horizon = Horizon([1])
    horizon.take([3], oldest=90, at=0)
    assert (horizon.low, horizon.told, horizon.needs_mark) == (1, {3}, True)
    horizon.mark(xid=100, at=0)
    assert not horizon.needs_mark
    horizon.take([4], oldest=100, at=PATIENCE)
    assert horizon.low == 1
    horizon.take([], oldest=101, at=PATIENCE / 2)
    assert horizon.low == 1, "an id is taken before its transaction has a number"
    horizon.take([], oldest=101, at=PATIENCE)
    assert (horizon.low, horizon.told) == (4, set())


def test_a_late_one_closes_the_gap() -> None:
    horizon = Horizon([1])
    horizon.take([3], oldest=90, at=0)
    horizon.mark(xid=100, at=0)
    horizon.take([2], oldest=90, at=0)
    assert (horizon.low, horizon.told, horizon.needs_mark) == (3, set(), False)


def test_what_came_behind_the_mark_waits_for_one_of_its_own() -> None:
    horizon = Horizon([1])
    horizon.take([3], oldest=90, at=0)
    horizon.mark(xid=100, at=0)
    horizon.take([5], oldest=101, at=PATIENCE)
    assert (horizon.low, horizon.told, horizon.needs_mark) == (3, {5}, True)


@pytest.fixture
def others(engine: Engine) -> Iterator[list[Connection]]:
    """Three connections with a transaction open."""
    with ExitStack() as stack:
        connections = [stack.enter_context(engine.connect()) for _ in range(3)]
        for each in connections:
            each.begin()
        yield connections


def test_with_open_transactions_nothing_is_lost(engine: Engine, others: list[Connection]) -> None:
    """The one with the lower number writes later: the end of the others' snapshot is no bound for what is still open."""
    older, late, early = others
    older.execute(text("create temp table old (id integer)"))  # has a number
    late_id = late.execute(RECORD, {"actor": ACTOR}).scalar_one()
    early_id = early.execute(RECORD, {"actor": ACTOR}).scalar_one()
    early.commit()
    now = 0.0
    told = list[int]()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as watcher:
        horizon = changes.begun(watcher)

        def look() -> None:
            nonlocal now
            now += PATIENCE
            found = changes.new(watcher, horizon.low, horizon.told, 100)
            told.extend(found.ids)
            horizon.take(found.ids, found.oldest, now)
            if horizon.needs_mark:
                horizon.mark(changes.next_xid(watcher), now)

        assert horizon.low < late_id < early_id
        for _ in range(3):
            look()
        assert horizon.low < late_id
        older.commit()
        for _ in range(3):
            look()
        assert horizon.low < late_id, "its writer is still open"
        late.commit()
        look()
        assert told == [late_id]
        assert horizon.low == early_id


def test_a_gap_that_was_rolled_back_holds_nothing_up(engine: Engine, others: list[Connection]) -> None:
    gone, stays, _ = others
    for each in (gone, stays):
        each.execute(RECORD, {"actor": ACTOR})
    gone.rollback()
    stays.commit()
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as watcher:
        horizon, now, deadline = Horizon([]), 0.0, time.monotonic() + 120
        # Of a server with other databases, whose transactions count too, it takes more than two looks.
        while not now or (horizon.told and time.monotonic() < deadline):
            found = changes.new(watcher, horizon.low, horizon.told, 100)
            horizon.take(found.ids, found.oldest, now)
            if horizon.needs_mark:
                horizon.mark(changes.next_xid(watcher), now)
            now += PATIENCE
            time.sleep(0.02)
        assert horizon.told == set()
