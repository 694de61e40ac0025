"""Signals agree with what is in the tables, are there for every plan, and are read from indexes."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import add, decision, head, items, plans, reconcile, session, signals
from ordering.decide import Failed
from ordering.errors import UnknownPlan
from ordering.model import NewItem, OnFailure, OnInterrupt, State
from ordering.signals import Signals
from tests import servers
from tests.ordering.acts import ACTOR, BROKEN, DONE, TOMORROW, claim, end, feed, lose, plan, put, run
from tests.ordering.test_indexes import explained
from tests.ordering.vacuumed import vacuum

NOTHING = timedelta(0)


def of(tx: Connection, name: str = "line") -> Signals:
    """The plan's signals, the same whether one plan or all are asked for."""
    (found,) = [each for each in signals.signals(tx) if each.plan == name]
    assert signals.signals_of(tx, name) == found
    return found


def later(tx: Connection, **length: float) -> None:
    """Let that much time have passed: the transaction's clock stands still, so what was written moves back."""
    moved = {"item": ("created_at", "due_at", "not_before", "unresolved_at"), "dispatch": ("created_at", "claimed_at")}
    for table, columns in moved.items():
        back = ", ".join(f"{column} = {column} - :by" for column in columns)
        tx.execute(text(f"update relevo.{table} set {back}"), {"by": timedelta(**length)})


@pytest.fixture
def line(tx: Connection) -> Connection:
    """A transaction with a started plan `line` without items."""
    plan(tx, autostart=True)
    return tx


def test_a_plan_without_anything_is_there_with_zeros(tx: Connection) -> None:
    plan(tx)
    plan(tx, "stream", concurrency=2)
    zeros = dict.fromkeys(signals.COUNTED, 0)
    for found, concurrency in zip(signals.signals(tx), (1, 2), strict=True):
        assert found == Signals(found.plan, concurrency, 0, NOTHING, 0.0, 0, NOTHING, NOTHING, NOTHING, zeros)
    assert [each.plan for each in signals.signals(tx)] == ["line", "stream"]
    with pytest.raises(UnknownPlan):
        signals.signals_of(tx, "nowhere")


def test_depth_counts_what_is_due_and_not_what_is_to_come(line: Connection) -> None:
    put(line, 3)
    put(line, 1, not_before=TOMORROW)
    (put_off,) = put(line, 1)
    items.postpone(line, put_off, TOMORROW, actor=ACTOR)
    assert (of(line).depth, of(line).items[State.WAITING], of(line).items[State.POSTPONED]) == (3, 4, 1)
    later(line, hours=25)
    assert of(line).depth == 4  # the postponed one is back in the line when a feeder wakes it
    head.wake_postponed(line)
    assert of(line).depth == 5
    feed(line)
    assert (of(line).depth, of(line).items[State.DISPATCHED]) == (4, 1)


def test_the_age_is_of_what_has_been_due_the_longest(line: Connection) -> None:
    put(line, 1, delay=timedelta(hours=1))
    assert of(line).oldest_age == NOTHING
    (due,) = put(line, 1)
    later(line, minutes=10)
    assert timedelta(minutes=9) < of(line).oldest_age < timedelta(minutes=11)
    later(line, minutes=55)
    assert timedelta(minutes=64) < of(line).oldest_age < timedelta(minutes=66)
    items.cancel(line, due, actor=ACTOR)
    # Due five minutes ago, though it was added more than an hour ago.
    assert timedelta(minutes=4) < of(line).oldest_age < timedelta(minutes=6)
    run(line)
    assert of(line).oldest_age == NOTHING


def test_what_waits_again_is_as_old_as_its_second_wait(tx: Connection) -> None:
    made = plan(tx, "stream", concurrency=1 + 1)
    put(tx, 1, plan="stream")
    later(tx, hours=3)
    (fed,) = head.feed(tx, made.id, serial=False)
    from ordering import finish

    finish.finish(tx, claim(tx, fed), Failed("E", "again", retry_in=timedelta(minutes=1)))
    assert (of(tx, "stream").depth, of(tx, "stream").oldest_age) == (0, NOTHING)
    later(tx, minutes=5)
    assert timedelta(minutes=3) < of(tx, "stream").oldest_age < timedelta(minutes=5)
    head.release_due(tx)
    assert timedelta(minutes=3) < of(tx, "stream").oldest_age < timedelta(minutes=5)
    (fed,) = head.feed(tx, made.id, serial=False)
    claimed = claim(tx, fed)
    lose(tx, claimed, closed=False)
    (known,) = [each for each in session.unlocked(tx) if each.id == session_of(tx)]
    reconcile.close(tx, known.id, proved=True)
    assert of(tx, "stream").depth == 1
    assert of(tx, "stream").oldest_age < timedelta(seconds=30)


def session_of(tx: Connection) -> int:
    found: int = tx.execute(text("select session_id from relevo.dispatch where session_id is not null and ended_at is null")).scalar_one()
    return found


def test_a_decision_makes_an_item_due_anew(line: Connection) -> None:
    put(line, 1)
    later(line, hours=1)
    failed = end(line, BROKEN)
    decision.retry(line, failed, actor=ACTOR)
    assert (of(line).depth, of(line).oldest_age) == (1, NOTHING)


@pytest.mark.parametrize("policy", list(OnFailure))
def test_a_serial_plan_is_blocked_for_as_long_as_nobody_decides(tx: Connection, policy: OnFailure) -> None:
    plan(tx, on_failure=policy)
    put(tx, 2)
    plans.start(tx, "line", actor=ACTOR)
    failed = end(tx, BROKEN)
    later(tx, minutes=7)
    assert (of(tx).dead_letters, of(tx).items[State.FAILED]) == (1, 1)
    if policy is OnFailure.CONTINUE:
        assert of(tx).blocked == NOTHING  # its run goes on, and when it is over none can be started
        end(tx, DONE)
        assert feed(tx) is None
    assert timedelta(minutes=6) < of(tx).blocked < timedelta(minutes=8)
    decision.skip(tx, failed, actor=ACTOR)
    assert (of(tx).blocked, of(tx).dead_letters) == (NOTHING, 0)


def test_a_stream_is_not_blocked_by_its_dead_letters(tx: Connection) -> None:
    made = plan(tx, "stream", concurrency=2, max_attempts=1)
    put(tx, 1, plan="stream")
    from ordering import finish

    (fed,) = head.feed(tx, made.id, serial=False)
    finish.finish(tx, claim(tx, fed), BROKEN)
    later(tx, minutes=7)
    assert (of(tx, "stream").dead_letters, of(tx, "stream").blocked) == (1, NOTHING)


def test_an_interruption_is_undecided_once_its_session_is_closed(tx: Connection) -> None:
    plan(tx, on_interrupt=OnInterrupt.HOLD)
    put(tx, 1)
    plans.start(tx, "line", actor=ACTOR)
    claimed = run(tx)
    lose(tx, claimed, closed=False)
    assert (of(tx).dead_letters, of(tx).items[State.INTERRUPTED]) == (0, 1)
    reconcile.close(tx, session_of(tx), proved=True)
    assert (of(tx).dead_letters, of(tx).items[State.INTERRUPTED]) == (1, 1)


def test_the_head_is_handed_out_and_then_runs(line: Connection) -> None:
    put(line, 1)
    fed = feed(line)
    assert fed is not None
    later(line, minutes=3)
    assert timedelta(minutes=2) < of(line).dispatched_age < timedelta(minutes=4)
    assert of(line).running_age == NOTHING
    claim(line, fed)
    later(line, minutes=2)
    assert of(line).dispatched_age == NOTHING
    assert timedelta(minutes=1) < of(line).running_age < timedelta(minutes=3)
    assert of(line).items[State.RUNNING] == 1


COUNT = 5_000


@pytest.fixture(scope="module")
def full(server_url: str, template: str) -> Iterator[Engine]:
    """A stream with 5,000 items due, as many in backoff, put off, dead and settled; and fifty plans beside it."""
    from ordering import db

    with servers.database(server_url, template) as url:
        made = db.engine(url)
        with made.begin() as tx:
            plan(tx, "stream", concurrency=8)
            add.add_many(tx, "stream", (NewItem("noop") for _ in range(5 * COUNT)), actor=ACTOR)
            for number, change in enumerate(
                (
                    "not_before = now() + interval '1 hour'",
                    "state = 'postponed', not_before = now() + interval '1 hour'",
                    "state = 'failed', unresolved_at = now(), error = 'no'",
                    "state = 'succeeded', settled_at = now()",
                )
            ):
                tx.execute(
                    text(f"update relevo.item set {change} where id > :from and id <= :to"),
                    {"from": number * COUNT, "to": (number + 1) * COUNT},
                )
            for number in range(50):
                plan(tx, f"p{number}")
        vacuum(made, "item")
        yield made
        made.dispose()


def test_signals_can_be_counted_in_indexes_alone(full: Engine) -> None:
    with full.connect() as tx:
        assert of(tx, "stream").items == {
            State.WAITING: 2 * COUNT,
            State.POSTPONED: COUNT,
            State.DISPATCHED: 0,
            State.RUNNING: 0,
            State.FAILED: COUNT,
            State.INTERRUPTED: 0,
        }
        tx.execute(signals.BY_INDEX)
        # A table as small as this one is read as quickly; one of ten million settled items is not.
        tx.execute(text("set local enable_bitmapscan = off"))
        for statement, values in ((signals.EVERY, {}), (signals.ONE, {"plan_id": plans.get(tx, "stream").id})):
            found = [
                node for node in explained(tx, statement, values) if node.get("Relation Name") == "item" and "Scan" in node["Node Type"]
            ]
            large = [node for node in found if node["Actual Rows"] * node["Actual Loops"] > 1000]
            assert len(large) == 4
            assert {node["Node Type"] for node in large} == {"Index Only Scan"}
            assert sum(node["Heap Fetches"] for node in large) == 0
