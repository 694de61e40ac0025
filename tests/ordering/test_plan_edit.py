"""A plan's settings change by name; what runs keeps the policy of its run."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, text

from ordering import head, plan_edit, plans
from ordering.errors import Invalid
from ordering.model import OnFailure, OnInterrupt
from tests.ordering.acts import ACTOR, BROKEN, assert_sound, end, events, feed, plan, put


def test_settings_change_by_name_and_the_rest_stays(tx: Connection) -> None:
    made = plan(tx, title="Old", max_attempts=3)
    change = {"on_failure": OnFailure.CONTINUE, "on_interrupt": OnInterrupt.REQUEUE, "autostart": True, "stop_grace": timedelta(minutes=1)}
    edited = plan_edit.edit(tx, made, change, actor=ACTOR)
    assert (edited.title, edited.max_attempts) == ("Old", 3)
    assert (edited.on_failure, edited.on_interrupt, edited.autostart) == ("continue", "requeue", True)
    assert events(tx) == ["create", "edit"]


def test_an_edit_that_changes_nothing_records_nothing(tx: Connection) -> None:
    made = plan(tx, title="Old")
    assert plan_edit.edit(tx, made, {"title": "Old", "on_failure": OnFailure.HALT}, actor=ACTOR) == made
    assert events(tx) == ["create"]


def test_what_runs_keeps_the_policy_of_its_run(tx: Connection) -> None:
    made = plan(tx)
    put(tx, 2)
    plans.start(tx, "line", actor=ACTOR)
    plan_edit.edit(tx, made, {"on_failure": OnFailure.CONTINUE}, actor=ACTOR)
    end(tx, BROKEN)
    assert feed(tx) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("colour", "red"),
        ("concurrency", 2),
        ("concurrency", 0),
        ("max_attempts", 0),
        ("stop_grace", timedelta(days=2)),
        ("keep", timedelta(0)),
        ("keep", timedelta(days=3661)),
        ("rate", Decimal(1)),
        ("title", "a\x00"),
        ("title", "\u200b"),
    ],
)
def test_what_is_no_setting_or_no_value_is_refused_by_name(tx: Connection, name: str, value: Any) -> None:
    made = plan(tx)
    with pytest.raises(Invalid) as refusal:
        plan_edit.edit(tx, made, {name: value}, actor=ACTOR)
    assert refusal.value.field == name
    assert plans.get(tx, "line") == made


def test_a_stream_takes_another_concurrency_at_once(tx: Connection) -> None:
    made = plan(tx, concurrency=2)
    put(tx, 9)
    assert len(head.feed(tx, made.id, serial=False)) == 2
    made = plan_edit.edit(tx, made, {"concurrency": 5}, actor=ACTOR)
    assert made.concurrency == 5
    assert len(head.feed(tx, made.id, serial=False)) == 3
    plan_edit.edit(tx, made, {"concurrency": 2}, actor=ACTOR)
    assert head.feed(tx, made.id, serial=False) == [], "what is out ends first"
    assert_sound(tx)
    for wrong in (1, 0, -1, 10_001):
        with pytest.raises(Invalid, match=f"^concurrency: {wrong} is out of range; the stream 'line' takes 2 to 10000"):
            plan_edit.edit(tx, made, {"concurrency": wrong}, actor=ACTOR)


def test_a_plan_with_a_subscription_takes_another_concurrency(tx: Connection) -> None:
    made = plan(tx, concurrency=2)
    tx.execute(text("insert into relevo.subscription (type, task, plan_id) values ('a', 'b', :plan)"), {"plan": made.id})
    assert plan_edit.edit(tx, made, {"concurrency": 3}, actor=ACTOR).concurrency == 3


def test_a_stream_with_a_rate_has_its_row_of_pace(tx: Connection) -> None:
    def paced() -> int:
        return int(tx.execute(text("select count(*) from relevo.pace")).scalar_one())

    made = plan(tx, "stream", concurrency=2)
    assert paced() == 0
    assert plan_edit.edit(tx, made, {"rate": Decimal(10), "keep": timedelta(hours=1)}, actor=ACTOR).rate == 10
    assert paced() == 1
    assert plan_edit.edit(tx, made, {"rate": None}, actor=ACTOR).rate is None
    assert plan(tx, "other", concurrency=2, rate=Decimal("0.5")).rate == Decimal("0.5")
    assert paced() == 2
    for out_of_range in (Decimal(0), Decimal("0.00001"), Decimal(100_001)):
        with pytest.raises(Invalid, match="rate: is out of range"):
            plan_edit.edit(tx, made, {"rate": out_of_range}, actor=ACTOR)
