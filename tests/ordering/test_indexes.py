"""The hot queries find their rows by index, whatever else lies in the tables."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, TextClause, text

from ordering import add, attempt, beside, changes, db, finish, head, lines, move, place, plans, reconcile, session, signals, stream
from ordering.decide import AlreadyDone, Succeeded
from ordering.model import NewItem
from tests import servers
from tests.ordering.acts import ACTOR, PROCESS, feed, plan
from tests.ordering.vacuumed import vacuum

COUNT = 20_000


@pytest.fixture(scope="module")
def full(server_url: str, template: str) -> Iterator[Engine]:
    """A plan with 20,000 waiting items, as many settled and 1,000 postponed, and 50 small plans."""
    with servers.database(server_url, template) as url:
        made = db.engine(url)
        with made.begin() as tx:
            plan(tx)
            add.add_many(tx, "line", (NewItem("noop", key=f"k{n}") for n in range(2 * COUNT + 1000)), actor=ACTOR)
            # Settled first, as in a plan that has run for long.
            tx.execute(text("update relevo.item set state = 'succeeded', settled_at = now() where id <= 20000"))
            tx.execute(
                text("""update relevo.item set state = 'postponed', not_before = now() + interval '1 hour' * id
                where id in (select id from relevo.item where settled_at is null order by id desc limit 1000)""")
            )
            plans.start(tx, "line", actor=ACTOR)
            feed(tx)
            for n in range(50):
                plan(tx, f"p{n}")
                add.add_many(tx, f"p{n}", [NewItem("noop")] * 3, actor=ACTOR)
                plans.start(tx, f"p{n}", actor=ACTOR)
            tx.execute(session.INSERT, vars(PROCESS))
            tx.execute(
                text("""insert into relevo.dispatch (plan_id, queue, task, claimed_at, session_id, ended_at, sends, sent_at)
                select min(id), 'q', 'noop', now(), (select min(id) from relevo.session), now(), 1, now()
                from relevo.plan, generate_series(1, 20000) group by generate_series""")
            )
        vacuum(made, "item", "dispatch")
        yield made
        made.dispose()


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", []):
        yield from nodes(each)


def explained(tx: Connection, statement: TextClause, values: dict[str, Any]) -> list[dict[str, Any]]:
    found = tx.execute(text(f"explain (analyze, format json) {statement.text}"), values).scalar_one()
    return list(nodes((json.loads(found) if isinstance(found, str) else found)[0]["Plan"]))


HOT: dict[str, tuple[TextClause, dict[str, Any], set[str]]] = {
    "feed": (head.FEED_SERIAL, {}, {"item_waiting", "item_head"}),
    "look at a stream": (stream.LOOK, {}, {"item_ready", "dispatch_of_plan", "dispatch_pace"}),
    "feed a stream": (stream.FEED, {"tasks": ["noop"], "sizes": [10], "items": 40, "dispatches": 4}, {"item_ready"}),
    "ready": (head.READY, {}, {"item_waiting"}),
    "plans to wake": (head.LOCK_TO_WAKE, {}, {"item_wake"}),
    "wake": (head.WAKE_POSTPONED, {"plans": [1], "limit": 1000}, set()),
    "drained": (plans.LEFT, {}, {"item_waiting", "item_head"}),
    "something waits": (plans.HAS_WAITING, {}, {"item_waiting"}),
    "unresolved": (plans.UNRESOLVED, {}, {"item_unresolved"}),
    "the first that waits": (place.FIRST_WAITING, {"but": 0}, {"item_waiting"}),
    "the last in the line": (place.LAST_UNSETTLED, {"but": 0}, {"item_line"}),
    "the neighbour below": (place.BELOW, {"but": 0, "position": 30_000}, {"item_line"}),
    "the neighbour above": (place.ABOVE, {"but": 0, "position": 30_000}, {"item_line"}),
    "around a gap": (place.AROUND, {"but": 0, "low": 30_000, "reach": 64}, {"item_line"}),
    "what a person sees behind": (beside.NEXT, {"but": 0, "anchor": 30_001}, {"item_waiting", "item_pkey"}),
    "what a person sees in front": (beside.PREVIOUS, {"but": 0, "anchor": 30_001}, {"item_waiting", "item_pkey"}),
    "the fresh order": (move.ORDER, {}, {"item_waiting"}),
    "read a claim": (attempt.READ, {}, {"item_dispatch"}),
    "same keys": (add.SAME_KEYS, {"keys": ["k1", "k7"]}, {"item_key"}),
    "an open entry": (add.OPEN_ENTRY, {"entries": ["e"]}, {"item_entry_open"}),
    "outstanding": (head.OUTSTANDING, {}, set()),
    "unsent": (head.TAKE_UNSENT, {"short": [], "limit": 500}, set()),
    "what a session runs": (reconcile.OPEN_DISPATCHES, {}, set()),
    "signs of change": (changes.SEALS, {}, {"item_waiting", "item_settled_at", "dispatch_of_plan", "dispatch_ended", "item_postponed"}),
    "a page of the line": (lines.PAGE, {"position": 30_000, "id": 0, "limit": 50}, {"item_waiting"}),
}


@pytest.mark.parametrize("name", HOT)
def test_a_hot_query_scans_no_table(full: Engine, name: str) -> None:
    statement, values, indexes = HOT[name]
    with full.connect() as tx:
        known = {
            "plan_id": plans.get(tx, "line").id,
            "dispatch_id": tx.execute(text("select id from relevo.dispatch where ended_at is null limit 1")).scalar_one(),
            "id": tx.execute(text("select min(id) from relevo.session")).scalar_one(),
        }
        given = {**{key: value for key, value in known.items() if f":{key}" in statement.text}, **values}
        found = explained(tx, statement, given)
    scans = [node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"]
    assert not {"item", "dispatch"} & set(scans)
    assert indexes <= {node["Index Name"] for node in found if "Index Name" in node}
    touched = sum(node.get("Actual Rows", 0) for node in found if node.get("Relation Name") == "item" and "Scan" in node["Node Type"])
    assert touched < 1000


@pytest.mark.parametrize("statement", [signals.ONE, signals.EVERY], ids=["one", "every"])
def test_what_waits_is_counted_in_the_narrowest_index_and_the_oldest_is_its_first_entry(full: Engine, statement: TextClause) -> None:
    with full.connect() as tx:
        tx.execute(signals.BY_INDEX)
        given = {"plan_id": plans.get(tx, "line").id} if statement is signals.ONE else {}
        found = explained(tx, statement, given)
    scans = [(node["Node Type"], node["Actual Rows"] * node["Actual Loops"]) for node in found if node.get("Index Name") == "item_due"]
    assert [kind for kind, _ in scans] == ["Index Only Scan", "Index Scan"]
    counted, first = (rows for _, rows in scans)
    assert counted >= COUNT - 1
    assert first <= 51
    assert not [node for node in found if node.get("Index Name") in ("item_waiting", "item_ready", "item_line")]
    assert {"item_delayed", "item_postponed"} <= {node["Index Name"] for node in found if "Index Name" in node}


def test_a_move_writes_one_row_through_indexes(full: Engine) -> None:
    with full.connect() as tx:
        found = explained(tx, move.MOVE, {"id": 30_001, "position": "7.5"})
    assert [node["Actual Rows"] for node in found if node["Node Type"] == "Index Scan"] == [1]


@pytest.mark.parametrize("attempted", [False, True])
def test_a_finish_touches_only_its_item(full: Engine, attempted: bool) -> None:
    with full.connect() as tx:
        row = tx.execute(text("select dispatch_id from relevo.item where dispatch_id is not null limit 1")).one()
        tx.execute(text("update relevo.dispatch set claimed_at = now(), session_id = 1 where id = :id"), {"id": row.dispatch_id})
        (run,) = attempt.claimed(tx, row.dispatch_id)
        verdict = finish.Verdict(run, Succeeded(None) if attempted else AlreadyDone("by hand"))
        settle, values = finish._settle([verdict], [finish._following(verdict)])
        found = explained(tx, settle, dict(values))
    assert not [node for node in found if node["Node Type"] == "Seq Scan" and node["Relation Name"] != "run"]
