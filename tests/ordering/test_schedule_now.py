"""A schedule's item by hand, and the item of its latest tick."""

import pytest
from sqlalchemy import Connection, text

from ordering import items, schedule, schedule_now, tick
from ordering.schedule import NewSchedule
from tests.ordering.acts import ACTOR, events, plan

NIGHTLY = NewSchedule("nightly", "line", "30 2 * * *", "shell", kwargs={"command": ["true"]}, kind="audit")


@pytest.fixture(autouse=True)
def scheduled(tx: Connection) -> None:
    plan(tx)
    schedule.create(tx, NIGHTLY, actor=ACTOR)


def test_it_is_added_now_and_the_ticks_come_as_before(tx: Connection) -> None:
    before = schedule.get(tx, "nightly")
    added = schedule_now.add_now(tx, before, actor="ops")
    item = items.get(tx, added.id)
    assert added.new
    assert (item.plan, item.task, item.kwargs, item.title, item.kind) == ("line", "shell", {"command": ["true"]}, "nightly", "audit")
    assert events(tx, added.id) == ["add"]
    after = schedule.get(tx, "nightly")
    assert (after.next_at, after.last_at) == (before.next_at, before.last_at)
    assert schedule_now.last_items(tx, ["nightly"]) == {}


def test_a_paused_one_too(tx: Connection) -> None:
    schedule.pause(tx, "nightly", actor=ACTOR)
    assert schedule_now.add_now(tx, schedule.get(tx, "nightly"), actor=ACTOR).new
    assert schedule.get(tx, "nightly").paused


def test_the_item_of_the_latest_tick_is_known(tx: Connection) -> None:
    tx.execute(text("update relevo.schedule set next_at = date_trunc('day', now()) - interval '21.5 hours'"))
    ((schedule_id,),) = tx.execute(text("select id from relevo.schedule")).all()
    (made,) = tick.tick(tx, schedule_id)
    schedule_now.add_now(tx, schedule.get(tx, "nightly"), actor=ACTOR)
    assert {name: item.id for name, item in schedule_now.last_items(tx, ["nightly"]).items()} == {"nightly": made}
    assert schedule_now.last_items(tx, ["other"]) == {}
