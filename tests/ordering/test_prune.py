"""What is old goes, in small steps and by indexes; nothing unresolved goes, nor what belongs to it."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import add, decision, history, items, plans, prune
from ordering.errors import UnknownItem
from ordering.model import NewItem, State
from tests.ordering.acts import ACTOR, assert_sound, bring, dead_session, end, plan, put

HOUR = timedelta(hours=1)
TABLES = ("item", "attempt", "output", "step", "event", "dispatch", "run", "fact", "session")


def age(tx: Connection, by: timedelta = timedelta(days=31)) -> None:
    """Let everything have happened so much earlier."""
    moments = {
        "item": ("created_at", "settled_at", "unresolved_at"),
        "attempt": ("started_at", "ended_at"),
        "event": ("at",),
        "dispatch": ("created_at", "claimed_at", "ended_at"),
        "run": ("started_at", "ended_at"),
        "fact": ("at",),
        "session": ("opened_at", "closed_at"),
    }
    for table, columns in moments.items():
        earlier = ", ".join(f"{column} = {column} - cast(:by as interval)" for column in columns)
        tx.execute(text(f"update relevo.{table} set {earlier}"), {"by": by})


def prune_all(tx: Connection, limit: int = 3) -> int:
    """Sweep to the end, in windows so small that each sweep takes several; how many rows went."""
    gone = 0
    for sweep in prune.due(tx):
        rest: prune.Sweep | None = sweep
        while rest is not None:
            step = prune.step(tx, rest, limit)
            assert step.gone <= limit
            gone, rest = gone + step.gone, step.rest
    return gone


def counts(tx: Connection) -> dict[str, int]:
    return {table: tx.execute(text(f"select count(*) from relevo.{table}")).scalar_one() for table in TABLES}


def left(tx: Connection) -> list[int]:
    return list(tx.execute(text("select id from relevo.item order by id")).scalars())


def close_sessions(tx: Connection) -> None:
    tx.execute(text("update relevo.session set closed_at = now()"))


def started(tx: Connection, name: str = "line", **settings: Any) -> None:
    plan(tx, name, **settings)
    plans.start(tx, name, actor=ACTOR)


def test_everything_of_what_is_settled_goes(tx: Connection) -> None:
    started(tx)
    for state in (State.SUCCEEDED, State.SKIPPED, State.RESOLVED, State.CANCELLED):
        bring(tx, state)
    (first, *_) = left(tx)
    tx.execute(text("insert into relevo.output (item_id, attempt, head) values (:id, 1, 'said')"), {"id": first})
    tx.execute(
        text("""insert into relevo.step (item_id, number, name, kind, done, attempt, started_at)
        values (:id, 1, 'one', 'step', true, 1, now())"""),
        {"id": first},
    )
    tx.execute(text("insert into relevo.fact (type, data, heard) values ('a', '{}', 1)"))
    tx.execute(text("update relevo.item set fact_id = (select id from relevo.fact) where id = :id"), {"id": first})
    close_sessions(tx)
    assert prune_all(tx) == 0, "nothing is old"
    plans.close_if_drained(tx, plans.get(tx, "line").id)
    plans.start(tx, "line", actor=ACTOR)
    assert 0 not in counts(tx).values()
    age(tx)
    assert prune_all(tx) > 0
    assert counts(tx) == {**dict.fromkeys(TABLES, 0), "run": 1}
    assert prune_all(tx) == 0
    assert prune.due(tx) == []


@pytest.mark.parametrize("state", [State.WAITING, State.POSTPONED, State.DISPATCHED, State.RUNNING, State.FAILED, State.INTERRUPTED])
def test_what_is_not_settled_stays_with_all_that_belongs_to_it(tx: Connection, state: State) -> None:
    started(tx)
    item = bring(tx, state)
    tx.execute(text("insert into relevo.fact (type, data, heard) values ('a', '{}', 1)"))
    tx.execute(text("update relevo.item set fact_id = (select id from relevo.fact)"))
    close_sessions(tx)
    age(tx, timedelta(days=3000))
    before, known = counts(tx), history.history(tx, item)
    prune_all(tx)
    free = {"event": 0, **({"dispatch": 0} if state is State.FAILED else {})}  # of the plan and of no item; ended, with its attempt told
    assert {**counts(tx), **free} == {**before, **free}
    assert history.history(tx, item) == known
    assert_sound(tx)


def test_what_is_younger_than_its_plan_keeps_it_stays(tx: Connection) -> None:
    started(tx, "short", keep=HOUR)
    started(tx, "long", keep=100 * HOUR)
    short, long_ = end(tx, plan=put_one(tx, "short")), end(tx, plan=put_one(tx, "long"))
    age(tx, 2 * HOUR)
    prune_all(tx)
    assert left(tx) == [long_]
    with pytest.raises(UnknownItem):
        items.get(tx, short)
    assert counts(tx)["session"] == 2, "sessions are not closed"


def put_one(tx: Connection, name: str) -> str:
    put(tx, plan=name)
    return name


@pytest.mark.parametrize("unsettled", ["repaired", "repair"])
def test_a_repair_stays_while_its_other_half_is_unsettled(tx: Connection, unsettled: str) -> None:
    started(tx, on_failure="continue")
    failed = bring(tx, State.FAILED)
    (repair,) = put(tx, repairs=failed)
    if unsettled == "repaired":
        end(tx)
    else:
        decision.resolve(tx, failed, actor=ACTOR, note="by hand")
    age(tx)
    prune_all(tx)
    assert left(tx) == [failed, repair]
    if unsettled == "repaired":
        decision.resolve(tx, failed, actor=ACTOR, note="by hand")
    else:
        end(tx)
    age(tx)
    prune_all(tx)
    assert left(tx) == []


def test_the_last_item_of_an_entry_stays_by_its_outcome(tx: Connection) -> None:
    started(tx)
    succeeded = [put(tx, entry="audit")[0] and end(tx) for _ in range(3)]
    skipped = bring(tx, State.SKIPPED, entry="audit")
    other = put(tx, entry="lint")[0]
    end(tx)
    tx.execute(text("update relevo.item set settled_at = settled_at + id * interval '1 second' where settled_at is not null"))
    age(tx)
    prune_all(tx)
    assert left(tx) == [succeeded[-1], skipped, other]


def test_what_a_process_holds_stays(tx: Connection) -> None:
    started(tx)
    item = bring(tx, State.RUNNING)
    items.cancel(tx, item, actor=ACTOR)
    age(tx)
    prune_all(tx)
    assert left(tx) == [item]
    tx.execute(text("update relevo.item set at_head = false"))
    prune_all(tx)
    assert left(tx) == [item], "its dispatch is open"


def test_a_key_lives_as_long_as_its_item(tx: Connection) -> None:
    started(tx)
    put(tx, key="k")
    first = end(tx)
    assert not add.add(tx, "line", NewItem("noop", key="k"), actor=ACTOR).new
    age(tx)
    prune_all(tx)
    again = add.add(tx, "line", NewItem("noop", key="k"), actor=ACTOR)
    assert again.new
    assert again.id != first


def test_the_latest_run_stays(tx: Connection) -> None:
    started(tx)
    for _ in range(4):
        end(tx, plan=put_one(tx, "line"))
        plans.close_if_drained(tx, plans.get(tx, "line").id)
        plans.start(tx, "line", actor=ACTOR)
    latest = tx.execute(text("select max(id) from relevo.run")).scalar_one()
    plans.pause(tx, "line", actor=ACTOR)
    age(tx)
    prune_all(tx)
    assert list(tx.execute(text("select id from relevo.run")).scalars()) == [latest]


def test_a_session_stays_while_an_attempt_names_it(tx: Connection) -> None:
    started(tx)
    bring(tx, State.FAILED)
    dead_session(tx)
    close_sessions(tx)
    age(tx)
    prune_all(tx)
    assert counts(tx)["session"] == 1
    assert counts(tx)["attempt"] == 1


def test_facts_stay_as_long_as_the_plan_that_keeps_longest(tx: Connection) -> None:
    plan(tx, keep=HOUR)
    plan(tx, "long", keep=48 * HOUR)
    tx.execute(text("insert into relevo.fact (type, data, heard) values ('unheard', '{}', 0)"))
    age(tx, 47 * HOUR)
    prune_all(tx)
    assert counts(tx)["fact"] == 1
    age(tx, 2 * HOUR)
    prune_all(tx)
    assert counts(tx)["fact"] == 0


def test_the_trail_without_a_plan_goes_too(tx: Connection) -> None:
    plan(tx)
    tx.execute(text("insert into relevo.event (actor, action) values ('relevo', 'refuse')"))
    age(tx)
    prune_all(tx)
    assert counts(tx)["event"] == 0


def test_two_at_once_wait_for_nothing(engine: Engine) -> None:
    with engine.begin() as tx:
        started(tx)
        for _ in range(4):
            bring(tx, State.CANCELLED)
        age(tx)
        sweep = prune.due(tx)[0]
    with engine.begin() as one, engine.begin() as other:
        other.execute(text("set local lock_timeout = '5s'"))
        assert prune.step(one, sweep, 2).gone == 2
        assert prune.step(other, sweep, 4).gone == 2
    with engine.begin() as tx:
        assert left(tx) == []
