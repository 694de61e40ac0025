"""Ticks on a clock that goes wrong and is set right: what is to come is counted anew."""

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, make_url, text

from ordering import clock, db, schedule, tick
from ordering.schedule import NewSchedule
from tests.ordering.acts import ACTOR, plan
from workers.ticking import Ticker

NOW = "create function ahead.now() returns timestamptz stable language sql as 'select pg_catalog.now() + length from ahead.by'"


def scheduled(tx: Connection, name: str, cron: str = "0 0 1 1 *") -> None:
    schedule.create(tx, NewSchedule(name, "line", cron, "noop"), actor=ACTOR)


def count(tx: Connection) -> int:
    found: int = tx.execute(text("select count(*) from relevo.item")).scalar_one()
    return found


class Clock:
    """A database whose clock goes `ahead` of the real one."""

    def __init__(self, engine: Engine, database_url: str) -> None:
        with engine.begin() as tx:
            tx.execute(text("create schema ahead"))
            tx.execute(text("create table ahead.by (length interval not null)"))
            tx.execute(text("insert into ahead.by values ('0')"))
            tx.execute(text(NOW))
        self._engine = db.engine(
            make_url(database_url).render_as_string(hide_password=False), pooled=False, settings={"search_path": "ahead,pg_catalog"}
        )

    def set(self, ahead: timedelta) -> None:
        self.transact(lambda tx: tx.execute(text("update ahead.by set length = :ahead"), {"ahead": ahead}))

    def transact(self, verb: Any) -> Any:
        return db.transact(self._engine, verb)


@pytest.fixture
def ahead(engine: Engine, database_url: str) -> Clock:
    return Clock(engine, database_url)


def next_at(on: Clock, name: str = "yearly") -> datetime:
    found: datetime = on.transact(lambda tx: schedule.get(tx, name).next_at)
    return found


def test_a_clock_that_went_wrong_and_was_set_right_holds_up_nothing(engine: Engine, ahead: Clock, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with engine.begin() as tx:
        plan(tx)
        scheduled(tx, "yearly")
        right = schedule.get(tx, "yearly").next_at
    ticker = Ticker()
    ticker.tick(ahead.transact)
    ahead.set(timedelta(days=1000))
    ticker.tick(ahead.transact)
    assert ahead.transact(count) == 1
    assert next_at(ahead) > right + timedelta(days=700)
    ahead.set(timedelta(0))
    ticker.tick(ahead.transact)
    assert next_at(ahead) == right
    assert [record.getMessage() for record in caplog.records if "had counted on other times" in record.getMessage()] == [
        "Schedules that had counted on other times for their next ticks (1; the clock was set back, or time zones have other rules): yearly"
    ]
    assert ahead.transact(count) == 1


def test_a_feeder_that_starts_counts_anew_what_is_to_come(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)
        for name in ("off", "broken", "paused"):
            scheduled(tx, name)
        right = schedule.get(tx, "off").next_at
        tx.execute(text("update relevo.schedule set next_at = next_at + interval '1 year'"))
        tx.execute(text("update relevo.schedule set timezone = 'Mars/Olympus' where name = 'broken'"))
        schedule.pause(tx, "paused", actor=ACTOR)
        assert tick.count_anew(tx) == ["off"]
        assert tick.count_anew(tx) == []
        assert schedule.get(tx, "off").next_at == right
        scheduled(tx, "due", "* * * * *")
        due = clock.now(tx).replace(second=0, microsecond=0) - timedelta(minutes=10)
        tx.execute(text("update relevo.schedule set next_at = :due where name = 'due'"), {"due": due})
        assert tick.count_anew(tx) == []
        assert schedule.get(tx, "due").next_at == due, "it is to be made"
        tx.execute(text("update relevo.schedule set next_at = next_at + interval '1 year' where name = 'off'"))
    Ticker().tick(lambda verb: db.transact(engine, verb))
    with engine.begin() as tx:
        assert schedule.get(tx, "off").next_at == right
