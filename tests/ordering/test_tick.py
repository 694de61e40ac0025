"""Ticks: one item each, however many look; missed ones as the schedule says; what is locked or broken holds up nobody."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, make_url, text

from ordering import clock, db, items, plans, schedule, tick, views
from ordering.errors import Invalid
from ordering.model import Missed, State
from ordering.schedule import NewSchedule
from tests.ordering.acts import ACTOR, assert_sound, bring, end, order, plan
from tests.ordering.rivals import race
from workers.ticking import Ticker

MINUTE = timedelta(minutes=1)
YEARLY = "0 0 1 1 *"


def scheduled(tx: Connection, name: str = "minutely", plan: str = "line", cron: str = "* * * * *", **fields: Any) -> None:
    schedule.create(tx, NewSchedule(name, plan, cron, "noop", **fields), actor=ACTOR)


def set_back(tx: Connection, back: timedelta, name: str = "minutely") -> datetime:
    """Let the schedule's next tick be the last one before so long ago, as after an outage of that length; that tick."""
    at = (clock.now(tx) - back).replace(second=0, microsecond=0)
    tx.execute(text("update relevo.schedule set next_at = :at where name = :name"), {"at": at, "name": name})
    return at


def set_to_new_year(tx: Connection, years: int = 0, name: str = "minutely") -> datetime:
    """Let the next tick of a yearly schedule be this year's first instant, or that of some years before; no other comes due in a test."""
    at = datetime(clock.now(tx).year - years, 1, 1, tzinfo=UTC)
    tx.execute(text("update relevo.schedule set next_at = :at where name = :name"), {"at": at, "name": name})
    return at


def tick_all(tx: Connection) -> list[int]:
    return [item for each in tick.look(tx).due for item in tick.tick(tx, each.id)]


def keys(tx: Connection) -> list[str]:
    return list(tx.execute(text("select key from relevo.item order by id")).scalars())


def missed(tx: Connection) -> list[Any]:
    return list(tx.execute(text("select after from relevo.event where action = 'miss' order by id")).scalars())


def test_a_tick_adds_the_item_and_names_its_instant(tx: Connection) -> None:
    plan(tx)
    scheduled(tx, args=[1, "x"], title="Each minute", kind="audit")
    assert tick_all(tx) == [], "its time has not come"
    at = set_back(tx, timedelta(0))
    (item_id,) = tick_all(tx)
    item = items.get(tx, item_id)
    assert (item.task, item.args, item.kwargs, item.title, item.kind) == ("noop", [1, "x"], {}, "Each minute", "audit")
    assert item.key == f"schedule minutely {at:%Y-%m-%dT%H:%M:%SZ}"
    found = schedule.get(tx, "minutely")
    assert (found.last_at, found.next_at) == (at, at + MINUTE)
    assert tick_all(tx) == []
    assert missed(tx) == []
    added = tx.execute(text("select actor, action, after from relevo.event where item_id = :id"), {"id": item_id}).one()
    assert (added.actor, added.action) == ("schedule minutely", "add")


def test_an_item_without_a_title_has_the_schedules_name(tx: Connection) -> None:
    plan(tx)
    scheduled(tx)
    set_back(tx, timedelta(0))
    assert items.get(tx, tick_all(tx)[0]).title == "minutely"


@pytest.mark.parametrize(("setting", "count"), [(Missed.ONE, 1), (Missed.SKIP, 1), (Missed.ALL, 11)])
def test_what_was_missed_is_made_as_the_schedule_says(tx: Connection, setting: Missed, count: int) -> None:
    plan(tx)
    scheduled(tx, missed=setting)
    first = set_back(tx, 10 * MINUTE)
    added = tick_all(tx)
    last = first + 10 * MINUTE
    wanted = [last - MINUTE * number for number in reversed(range(count))]
    assert keys(tx) == [f"schedule minutely {at:%Y-%m-%dT%H:%M:%SZ}" for at in wanted]
    assert order(tx) == added
    assert schedule.get(tx, "minutely").next_at == last + MINUTE
    left_out = missed(tx)
    if setting is Missed.ALL:
        assert left_out == []
    else:
        assert [(each["schedule"], each["from"], each["before"]) for each in left_out] == [("minutely", str(first), str(last))]


def test_a_skipped_tick_leaves_a_line_in_the_trail(tx: Connection) -> None:
    plan(tx)
    scheduled(tx, cron=YEARLY, missed=Missed.SKIP)
    year = clock.now(tx).year
    tx.execute(text("update relevo.schedule set next_at = make_timestamptz(:year, 1, 1, 0, 0, 0, 'UTC')"), {"year": year})
    assert tick_all(tx) == []
    found = schedule.get(tx, "minutely")
    assert (found.last_at, found.next_at.year) == (None, year + 1)
    assert len(missed(tx)) == 1


def test_all_is_bounded_to_the_latest(tx: Connection) -> None:
    plan(tx)
    scheduled(tx, missed=Missed.ALL)
    set_back(tx, timedelta(days=400))
    assert len(tick_all(tx)) == 100
    assert len(missed(tx)) == 1


def test_a_tick_counts_also_while_the_item_before_is_unresolved(tx: Connection) -> None:
    plan(tx)
    plans.start(tx, "line", actor=ACTOR)
    failed = bring(tx, State.FAILED)
    scheduled(tx)
    set_back(tx, timedelta(0))
    (added,) = tick_all(tx)
    assert items.get(tx, failed).at_head
    assert order(tx) == [added]


@pytest.mark.parametrize(("autostart", "status"), [(True, views.Status.RUNNING), (False, views.Status.NEW)])
def test_a_tick_starts_the_plan_that_starts_by_itself(tx: Connection, autostart: bool, status: views.Status) -> None:
    plan(tx, autostart=autostart)
    scheduled(tx)
    set_back(tx, timedelta(0))
    tick_all(tx)
    assert views.plan(tx, "line").status is status
    if autostart:
        end(tx)
    assert_sound(tx)


def test_a_stream_is_scheduled_too(tx: Connection) -> None:
    plan(tx, "stream", concurrency=4)
    scheduled(tx, plan="stream")
    set_back(tx, timedelta(0))
    assert len(tick_all(tx)) == 1


def test_paused_and_removed_schedules_do_not_tick(tx: Connection) -> None:
    plan(tx)
    scheduled(tx)
    set_back(tx, timedelta(0))
    (due,) = tick.look(tx).due
    schedule.pause(tx, "minutely", actor=ACTOR)
    assert tick.look(tx).due == []
    assert tick.tick(tx, due.id) == []
    schedule.remove(tx, "minutely", actor=ACTOR)
    assert tick.tick(tx, due.id) == []


def test_a_clock_that_was_set_back_makes_no_tick_twice(tx: Connection) -> None:
    plan(tx)
    scheduled(tx)
    set_back(tx, timedelta(0))
    tick_all(tx)
    set_back(tx, timedelta(0))
    assert tick_all(tx) == []
    schedule.put(tx, NewSchedule("minutely", "line", "* * * * *", "other"), actor=ACTOR)
    set_back(tx, timedelta(0))
    assert tick_all(tx) == [], "that tick was made with another content"
    assert schedule.get(tx, "minutely").next_at > clock.now(tx)
    assert len(keys(tx)) == 1


def test_two_feeders_make_one_item(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)
        scheduled(tx, cron=YEARLY)
        set_to_new_year(tx, years=1)
        (due,) = tick.look(tx).due
    assert race(engine, lambda tx: tick.tick(tx, due.id), lambda tx: tick.tick(tx, due.id)) == []
    with engine.begin() as tx:
        assert (len(keys(tx)), len(missed(tx))) == (1, 1)


def test_who_pauses_or_changes_it_meanwhile_is_heard(engine: Engine) -> None:
    def hold_and_pause(tx: Connection) -> None:
        plans.lock_by_name(tx, "line")
        schedule.pause(tx, "minutely", actor=ACTOR)

    with engine.begin() as tx:
        plan(tx)
        scheduled(tx)
        set_back(tx, timedelta(0))
        (due,) = tick.look(tx).due
    assert race(engine, hold_and_pause, lambda tx: tick.tick(tx, due.id)) == []
    with engine.begin() as tx:
        assert keys(tx) == []


def test_what_is_edited_an_instant_before_is_what_the_tick_adds(engine: Engine) -> None:
    def hold_and_edit(tx: Connection) -> None:
        plans.lock_by_name(tx, "line")
        schedule.edit(tx, "minutely", {"task": "other", "args": [2], "title": "Edited"}, actor=ACTOR)

    with engine.begin() as tx:
        plan(tx)
        scheduled(tx, title="As it was")
        set_back(tx, timedelta(0))
        (due,) = tick.look(tx).due
    (item_id,) = race(engine, hold_and_edit, lambda tx: tick.tick(tx, due.id))
    with engine.begin() as tx:
        item = items.get(tx, item_id)
    assert (item.task, item.args, item.title) == ("other", [2], "Edited")


@pytest.mark.parametrize("change", [{"cron": "0 0 1 1 *"}, {"timezone": "Asia/Kolkata"}, {"plan": "other"}])
def test_a_tick_whose_schedule_went_elsewhere_an_instant_before_is_not_made_there(engine: Engine, change: dict[str, Any]) -> None:
    def hold_and_edit(tx: Connection) -> None:
        plans.lock_by_name(tx, "line")
        schedule.edit(tx, "minutely", change, actor=ACTOR)

    with engine.begin() as tx:
        plan(tx)
        plan(tx, "other")
        scheduled(tx)
        set_back(tx, timedelta(0))
        (due,) = tick.look(tx).due
    assert race(engine, hold_and_edit, lambda tx: tick.tick(tx, due.id)) == []
    with engine.begin() as tx:
        still_due = [each.id for each in tick.look(tx).due]
        assert len(tick_all(tx)) == len(still_due) == ("plan" in change)
        assert order(tx) == []


@pytest.fixture
def impatient(database_url: str) -> Engine:
    return db.engine(make_url(database_url).render_as_string(hide_password=False), pooled=False, settings={"lock_timeout": "300"})


def test_a_locked_plan_and_a_broken_schedule_starve_no_other(engine: Engine, impatient: Engine, caplog: pytest.LogCaptureFixture) -> None:
    ticker = Ticker()

    def tick_once() -> list[int]:
        before = len(made())
        ticker.tick(lambda verb: db.transact(impatient, verb))
        return made()[before:]

    def made() -> list[int]:
        with engine.begin() as tx:
            return list(tx.execute(text("select plan_id from relevo.item order by id")).scalars())

    with engine.begin() as tx:
        ids = {name: plan(tx, name).id for name in ("held", "broken", "free")}
        for number in range(3):
            scheduled(tx, f"held-{number}", "held", YEARLY)
            set_to_new_year(tx, 2, f"held-{number}")
        scheduled(tx, "broken", "broken", YEARLY)
        set_to_new_year(tx, 1, "broken")
        tx.execute(text("update relevo.schedule set timezone = 'Mars/Olympus' where name = 'broken'"))
        scheduled(tx, "free", "free", YEARLY)
        set_to_new_year(tx, name="free")
    caplog.set_level(logging.WARNING)
    with engine.begin() as holder:
        plans.lock_by_name(holder, "held")
        assert tick_once() == [ids["free"]]
    assert tick_once() == [ids["held"]] * 3
    assert [record.getMessage() for record in caplog.records if "cannot tick" in record.getMessage()] == [
        "Schedule broken cannot tick: timezone: 'Mars/Olympus' is not a known time zone; write for example Europe/Berlin or UTC."
    ]
    with engine.begin() as tx, pytest.raises(Invalid):
        tick_all(tx)
    with engine.begin() as tx:
        schedule.put(tx, NewSchedule("broken", "broken", YEARLY, "noop"), actor=ACTOR)
        set_to_new_year(tx, name="broken")
    assert tick_once() == [ids["broken"]]


def test_a_tick_is_made_and_counted_or_neither(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)
        scheduled(tx)
        at = set_back(tx, timedelta(0))
        (due,) = tick.look(tx).due
    with engine.connect() as dying:
        assert tick.tick(dying, due.id)
        dying.rollback()
    with engine.begin() as tx:
        assert (schedule.get(tx, "minutely").next_at, keys(tx)) == (at, [])
        assert len(tick_all(tx)) == 1
