"""Ten thousand sleepers cost nothing: what the services ask each second finds its rows by index and meets none of them."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, TextClause, text

from ordering import add, db, head, plans, stream
from ordering.model import NewItem
from tests import servers
from tests.ordering.acts import ACTOR, plan
from tests.ordering.test_indexes import explained
from tests.ordering.vacuumed import vacuum

SLEEPERS = 5_000  # of each of two plans


@pytest.fixture(scope="module")
def asleep(server_url: str, template: str) -> Iterator[Engine]:
    """A serial plan and a stream with so many sleeping items each, and one item that waits behind them."""
    with servers.database(server_url, template) as url:
        made = db.engine(url)
        with made.begin() as tx:
            for name, concurrency in (("line", 1), ("flow", 8)):
                plan(tx, name, concurrency=concurrency)
                add.add_many(tx, name, [NewItem("noop")] * (SLEEPERS + 1), actor=ACTOR)
            plans.start(tx, "line", actor=ACTOR)
            tx.execute(
                text("""update relevo.item set state = 'postponed', not_before = now() + interval '1 hour' + interval '1 minute' * id
                where id not in (select max(id) from relevo.item group by plan_id)""")
            )
            tx.execute(
                text("""insert into relevo.step (item_id, number, name, kind, done, attempt, started_at, wake_at)
                select id, 1, 'trial', 'sleep', true, 1, now(), not_before from relevo.item where state = 'postponed'""")
            )
        vacuum(made, "item")
        yield made
        made.dispose()


ASKED: dict[str, tuple[TextClause, dict[str, Any]]] = {
    "plans to wake": (head.LOCK_TO_WAKE, {}),
    "wake": (head.WAKE_POSTPONED, {"limit": 1000}),
    "ready": (head.READY, {}),
    "feed": (head.FEED_SERIAL, {}),
    "drained": (plans.LEFT, {}),
    "look at a stream": (stream.LOOK, {}),
    "feed a stream": (stream.FEED, {"tasks": ["noop"], "sizes": [100], "items": 100, "dispatches": 8}),
    "release": (head.RELEASE, {"limit": 1000}),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("plan_name", ["line", "flow"])
def test_what_is_asked_each_second_meets_no_sleeper(asleep: Engine, name: str, plan_name: str) -> None:
    statement, values = ASKED[name]
    with asleep.connect() as tx:
        plan_id = plans.get(tx, plan_name).id
        known = {key: value for key, value in {"plan_id": plan_id, "plans": [plan_id]}.items() if f":{key}" in statement.text}
        found = explained(tx, statement, {**known, **values})
    reads = [node for node in found if node.get("Relation Name") == "item" and "Scan" in node["Node Type"]]
    assert not [node for node in reads if node["Node Type"] == "Seq Scan"]
    # Of the postponed ones at most the next to wake is looked at, to tell that something is left.
    assert sum(node["Actual Rows"] * node["Actual Loops"] + node.get("Rows Removed by Filter", 0) for node in reads) <= 10


def test_ten_thousand_wake_in_few_steps(asleep: Engine) -> None:
    with asleep.connect() as tx:
        tx.execute(text("update relevo.item set not_before = now() where state = 'postponed'"))
        woken = 0
        while head.wake_postponed(tx):
            woken += 1
        assert woken == 2 * SLEEPERS / 1000
        line = plans.get(tx, "line").id
        assert len(head.feed(tx, line, serial=True)) == 1
        assert (
            tx.execute(text("select min(id) from relevo.item where plan_id = :id"), {"id": line}).scalar_one()
            == tx.execute(text("select id from relevo.item where at_head")).scalar_one()
        )
        tx.rollback()
