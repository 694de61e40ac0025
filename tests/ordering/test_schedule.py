"""The verbs on schedules: create, put, pause, resume, remove, each with its line of the trail."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import clock, schedule
from ordering.errors import Invalid, ScheduleExists, UnknownPlan, UnknownSchedule
from ordering.model import Missed
from ordering.schedule import NewSchedule
from tests.ordering.acts import ACTOR, events, plan
from tests.ordering.rivals import race

HOURLY = NewSchedule("hourly", "line", "0 * * * *", "noop", kwargs={"a": 1}, title="Each hour", kind="audit")


def create(tx: Connection, new: NewSchedule = HOURLY) -> schedule.Schedule:
    plan(tx)
    return schedule.create(tx, new, actor=ACTOR)


def changed(**values: Any) -> NewSchedule:
    return NewSchedule(**{**vars(HOURLY), **values})


def trail(tx: Connection) -> list[Any]:
    return list(tx.execute(text("select actor, action, before, after, reason from relevo.event order by id")))[1:]


def test_a_schedule_ticks_first_at_the_first_tick_after_now(tx: Connection) -> None:
    made = create(tx)
    now = clock.now(tx)
    assert made.next_at == (now + timedelta(hours=1)).replace(minute=0, second=0, microsecond=0)
    assert made.ticks == [made.next_at + timedelta(hours=hour) for hour in range(5)]
    assert (made.name, made.plan, made.cron, made.timezone, made.missed) == ("hourly", "line", "0 * * * *", "UTC", Missed.ONE)
    assert (made.task, made.args, made.kwargs, made.title, made.kind) == ("noop", [], {"a": 1}, "Each hour", "audit")
    assert (made.paused, made.declared, made.last_at, made.problem) == (False, False, None, None)
    assert schedule.get(tx, "hourly") == made
    assert schedule.list_(tx) == [made]
    (event,) = trail(tx)
    assert (event.actor, event.action, event.after["schedule"], event.after["cron"]) == (ACTOR, "create", "hourly", "0 * * * *")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "Not a name"}, "schedule"),
        ({"name": "x" * 64}, "schedule"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"timezone": "Mars"}, "timezone"),
        ({"task": ""}, "task"),
        ({"args": [float("nan")]}, "args"),
        ({"kwargs": {"a": "\0"}}, "args"),
        ({"title": "\ud800"}, "title"),
        ({"kind": "k" * 101}, "kind"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_its_field(tx: Connection, change: dict[str, Any], field: str) -> None:
    plan(tx)
    for verb in (schedule.create, schedule.put):
        with pytest.raises(Invalid) as refusal:
            verb(tx, changed(**change), actor=ACTOR)
        assert refusal.value.field == field
    assert schedule.list_(tx) == []


def test_names_that_are_not_there_are_refused(tx: Connection) -> None:
    with pytest.raises(UnknownPlan):
        schedule.create(tx, HOURLY, actor=ACTOR)
    for verb in (schedule.pause, schedule.resume, schedule.remove):
        with pytest.raises(UnknownSchedule, match="There is no schedule 'nobody'"):
            verb(tx, "nobody", actor=ACTOR)
    with pytest.raises(UnknownSchedule):
        schedule.get(tx, "nobody")


def test_a_name_is_taken_in_all_plans(tx: Connection) -> None:
    create(tx)
    plan(tx, "other")
    with pytest.raises(ScheduleExists):
        schedule.create(tx, changed(plan="other"), actor=ACTOR)
    assert schedule.get(tx, "hourly").plan == "line"


def test_put_makes_changes_and_leaves_alone(tx: Connection) -> None:
    plan(tx)
    plan(tx, "other")
    made = schedule.put(tx, changed(declared=True), actor=ACTOR)
    assert made.declared
    assert schedule.put(tx, changed(declared=True), actor=ACTOR) == made
    assert [each.action for each in trail(tx)[1:]] == ["create"]
    put = schedule.put(tx, changed(plan="other", cron="30 4 * * *", timezone="Asia/Tokyo", title="", declared=True), actor=ACTOR)
    assert (put.plan, put.cron, put.title, put.kwargs) == ("other", "30 4 * * *", "", {"a": 1})
    assert (put.next_at.hour, put.next_at.minute) == (19, 30)
    event = trail(tx)[-1]
    assert event.action == "edit"
    assert event.before == {"schedule": "hourly", "plan": "line", "cron": "0 * * * *", "timezone": "UTC", "title": "Each hour"}
    assert event.after == {"schedule": "hourly", "plan": "other", "cron": "30 4 * * *", "timezone": "Asia/Tokyo", "title": ""}


def test_put_keeps_what_is_due_and_what_is_paused(tx: Connection) -> None:
    create(tx)
    schedule.pause(tx, "hourly", actor=ACTOR)
    due = datetime.fromisoformat("2026-01-01T00:00:00Z")
    tx.execute(text("update relevo.schedule set next_at = :due"), {"due": due})
    put = schedule.put(tx, changed(missed=Missed.ALL, declared=True), actor=ACTOR)
    assert (put.next_at, put.missed, put.paused, put.declared) == (due, Missed.ALL, True, True)
    assert schedule.put(tx, changed(cron="30 * * * *"), actor=ACTOR).next_at > clock.now(tx)


def test_two_deployments_at_once_make_one(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)
    put = race(
        engine, lambda tx: schedule.put(tx, HOURLY, actor=ACTOR), lambda tx: schedule.put(tx, changed(cron="5 * * * *"), actor=ACTOR)
    )
    assert put.cron == "5 * * * *"
    with engine.begin() as tx:
        assert schedule.list_(tx) == [put]


def test_what_was_missed_in_a_pause_is_not_made(tx: Connection) -> None:
    create(tx)
    assert schedule.pause(tx, "hourly", actor=ACTOR, reason="full").paused
    assert schedule.pause(tx, "hourly", actor=ACTOR).paused
    tx.execute(text("update relevo.schedule set next_at = '2026-01-01'"))
    resumed = schedule.resume(tx, "hourly", actor=ACTOR)
    assert not resumed.paused
    assert resumed.next_at > clock.now(tx)
    tx.execute(text("update relevo.schedule set next_at = '2026-01-01'"))
    assert schedule.resume(tx, "hourly", actor=ACTOR).next_at.year == 2026, "it was not paused"
    assert [(each.action, each.reason) for each in trail(tx)[1:]] == [("pause", "full"), ("resume", "")]


def test_remove_removes(tx: Connection) -> None:
    made = create(tx)
    gone = schedule.remove(tx, "hourly", actor=ACTOR, reason="moved")
    assert (gone.name, gone.cron) == (made.name, made.cron)
    assert schedule.list_(tx) == []
    assert events(tx)[-1] == "remove"
    assert trail(tx)[-1].before["kwargs"] == {"a": 1}


def test_a_zone_that_is_known_no_more_is_shown(tx: Connection) -> None:
    create(tx)
    tx.execute(text("update relevo.schedule set timezone = 'Mars/Olympus'"))
    (found,) = schedule.list_(tx)
    assert found.problem is not None
    assert found.problem.startswith("timezone: 'Mars/Olympus' is not a known time zone")
    assert found.ticks == ()
    assert schedule.pause(tx, "hourly", actor=ACTOR).paused
    with pytest.raises(Invalid, match="timezone"):
        schedule.resume(tx, "hourly", actor=ACTOR)
    assert schedule.put(tx, HOURLY, actor=ACTOR).problem is None


def test_a_page_goes_on_behind_the_last_name(tx: Connection) -> None:
    plan(tx, "other")
    create(tx)
    for name, where, title in (("a", "other", ""), ("b", "line", "BACK up 100%"), ("c", "other", "back up")):
        schedule.create(tx, changed(name=name, plan=where, title=title), actor=ACTOR)

    def names(**asked: Any) -> tuple[list[str], str | None]:
        found, following = schedule.page(tx, **{"limit": 10, **asked})
        return [each.name for each in found], following

    assert names(limit=2) == (["a", "b"], "b")
    assert names(limit=2, after="b") == (["c", "hourly"], None)
    assert names(plan="other") == (["a", "c"], None)
    assert names(plan="other", limit=1) == (["a"], "a")
    assert names(containing="Back Up") == (["b", "c"], None)
    assert names(containing="100%") == (["b"], None)
    assert names(containing="NOOP")[0] == ["a", "b", "c", "hourly"]
    assert names(plan="nowhere") == ([], None)
    assert [each.name for each in schedule.list_(tx, plan="other")] == ["a", "c"]
    with pytest.raises(UnknownPlan):
        schedule.list_(tx, plan="nowhere")


def test_an_edit_changes_only_its_fields(tx: Connection) -> None:
    create(tx)
    edited = schedule.edit(tx, "hourly", {"args": [1], "kwargs": {}, "missed": Missed.SKIP}, actor="ops")
    assert (edited.args, edited.kwargs, edited.missed, edited.title) == ([1], {}, Missed.SKIP, "Each hour")
    assert schedule.edit(tx, "hourly", {"missed": Missed.SKIP}, actor="ops") == edited
    assert [each.action for each in trail(tx)] == ["create", "edit"]
    with pytest.raises(Invalid, match="name: is not a field of a schedule that can be edited"):
        schedule.edit(tx, "hourly", {"name": "other"}, actor="ops")


def test_an_edit_waits_for_the_one_before(engine: Engine) -> None:
    with engine.begin() as tx:
        create(tx)

    def lock_and_edit(tx: Connection) -> None:
        schedule.lock(tx, "hourly")
        schedule.edit(tx, "hourly", {"task": "shell"}, actor=ACTOR)

    assert race(engine, lock_and_edit, lambda tx: schedule.lock(tx, "hourly").task) == "shell"
