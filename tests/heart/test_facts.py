"""Facts from a program's own transaction: each task that hears them runs once with the data, typed; none for what was rolled back."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from sqlalchemy.orm import Session

from ordering import facts, subscriptions
from ordering.model import State
from tests.cases.kit import Kit, wait_until
from workers import emit

AT = datetime(2030, 1, 31, tzinfo=UTC)


def became(up: Kit, fact: int) -> dict[str, int]:
    """The items that the fact became, by their tasks."""
    with up.tx() as tx:
        return {each.task: each.id for each in facts.fact(tx, fact).items}


def test_the_tasks_of_a_worker_hear_what_they_say(up: Kit) -> None:
    with up.tx() as tx:
        found = {(each.type, each.task, each.plan) for each in subscriptions.subscriptions(tx)}
    assert found == {
        ("heart.happened", "heart.hears", "hearing"),
        ("heart.also", "heart.hears", "hearing"),
        ("heart.happened", "heart.hears_too", "default"),
    }
    assert {event.actor.split("@")[0] for event in up.events("subscribe")} == {"relevo"}


def test_each_that_hears_runs_once_with_typed_data(up: Kit) -> None:
    with Session(up.engine) as session, session.begin():
        made = emit(session, "heart.happened", {"at": AT, "amount": Decimal("1.10")}, key="typed")
        assert emit(session, "heart.happened", {"at": AT, "amount": Decimal("1.10")}, key="typed") == made
    items = became(up, made)
    assert up.wait_state(items["heart.hears"], State.SUCCEEDED).result == {
        "at": "datetime 2030-01-31 00:00:00+00:00",
        "amount": "Decimal 1.10",
    }
    up.wait_state(items["heart.hears_too"], State.SUCCEEDED)
    assert sorted(items) == ["heart.hears", "heart.hears_too"]
    assert all(len(up.starts(item)) == 1 for item in items.values())


def test_what_is_rolled_back_runs_nothing(up: Kit) -> None:
    with Session(up.engine) as session:
        undone = emit(session, "heart.also", {"n": 1})
        session.rollback()
    with Session(up.engine) as session, session.begin():
        made = emit(session, "heart.also", {"n": 2})
    (item,) = became(up, made).values()
    up.wait_state(item, State.SUCCEEDED)
    assert up.sql("select id from relevo.fact where id = :id", id=undone) == []
    assert up.sql("select id from relevo.item where args = '[{\"n\": 1}]'") == []


def test_a_program_in_any_language_emits_by_sql(up: Kit) -> None:
    with up.psql() as connection:
        row = connection.execute("select relevo.emit('heart.also', '{\"id\": 1}', 'by-sql')").fetchone()
        assert row is not None
    (item,) = became(up, row[0]).values()
    assert up.wait_state(item, State.SUCCEEDED).result == {"id": "int 1"}


def test_data_that_only_look_typed_stop_nobody(up: Kit) -> None:
    odd: Any = {"a": {"__type__": "datetime", "__value__": "yesterday"}}
    with up.psql() as connection:
        row = connection.execute("select relevo.emit('heart.happened', %s::jsonb)", (json.dumps(odd),)).fetchone()
        assert row is not None
    items = became(up, row[0])
    assert up.wait_state(items["heart.hears_too"], State.SUCCEEDED).result == odd
    up.wait_state(items["heart.hears"], State.SUCCEEDED)


def test_a_worker_whose_task_hears_in_a_serial_plan_does_not_start_and_leaves_nothing(up: Kit) -> None:
    up.plan("serial", start=False)
    module = up.folder / "wrong_hearing.py"
    module.write_text(
        "from workers import celery\n"
        "@celery.task(name='wrong.good', on='wrong.a', plan='made-by-nobody')\n"
        "def good(data): pass\n"
        "@celery.task(name='wrong.bad', on='wrong.a', plan='serial')\n"
        "def bad(data): pass\n"
    )
    catalogue = up.catalogue(imports=("wrong_hearing",), name="wrong.toml")
    worker = up.worker(ready=False, RELEVO_CATALOGUE=str(catalogue))
    wait_until(lambda: worker.process.poll() is not None, 60, "the end of the worker")
    assert worker.process.poll() == 2
    (said,) = worker.text().splitlines()
    assert said.startswith("plan: 'serial' is a serial plan, so the task 'wrong.bad' cannot hear 'wrong.a' there; name a stream")
    assert up.sql("select name from relevo.plan where name = 'made-by-nobody'") == []
    assert up.sql("select name from relevo.task where name like 'wrong.%'") == []
    assert up.sql("select task from relevo.subscription where type = 'wrong.a'") == []
