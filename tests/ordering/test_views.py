"""What people read of plans: status, counts, head, the line page by page, and an item's history."""

import time
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import attempt, clock, decision, finish, items, lines, plans, session, views
from ordering.errors import Invalid, UnknownItem, UnknownPlan
from ordering.history import history
from ordering.lines import Cursor
from ordering.model import First, OnFailure, Outcome, State
from ordering.views import Status
from tests.ordering.acts import (
    ACTOR,
    BROKEN,
    DONE,
    PROCESS,
    TOMORROW,
    bring,
    claim,
    dead_session,
    end,
    feed,
    ids,
    lose,
    order,
    plan,
    put,
    run,
)
from tests.ordering.vacuumed import vacuum


def started(tx: Connection, **settings: Any) -> None:
    plan(tx, **settings)
    plans.start(tx, "line", actor=ACTOR)


def status(tx: Connection) -> Status:
    return views.plan(tx, "line").status


def test_a_new_plan_has_every_count_as_zero_and_no_run(tx: Connection) -> None:
    plan(tx, title="Title")
    found = views.plan(tx, "line")
    assert (found.title, found.status, found.run, found.head) == ("Title", Status.NEW, None, None)
    assert found.counts == dict.fromkeys(State, 0)


def test_an_unknown_plan_is_refused(tx: Connection) -> None:
    with pytest.raises(UnknownPlan):
        views.plan(tx, "nobody")


def test_plans_are_listed_by_name_each_with_its_own_head_and_counts(tx: Connection) -> None:
    for name in ("b", "a"):
        plan(tx, name)
        plans.start(tx, name, actor=ACTOR)
    (first,) = put(tx, plan="a")
    put(tx, 2, plan="b")
    feed(tx, "a")
    a, b = views.plans(tx)
    assert (a.name, b.name) == ("a", "b")
    assert a.head is not None
    assert (a.head.id, a.head.state, b.head) == (first, State.DISPATCHED, None)
    assert (a.counts[State.DISPATCHED], a.counts[State.WAITING], b.counts[State.WAITING]) == (1, 0, 2)


def test_running_is_read_from_the_claimed_dispatch(tx: Connection) -> None:
    started(tx)
    (item,) = put(tx)
    fed = feed(tx)
    assert fed is not None
    assert views.plan(tx, "line").counts[State.RUNNING] == 0
    claim(tx, fed)
    found = views.plan(tx, "line")
    assert (found.counts[State.DISPATCHED], found.counts[State.RUNNING]) == (0, 1)
    assert found.head is not None
    assert (found.head.id, found.head.state) == (item, State.RUNNING)
    assert found.head.session is not None
    assert found.head.since == tx.execute(text("select claimed_at from relevo.dispatch")).scalar_one()


@pytest.mark.parametrize("state", list(State))
def test_every_state_is_counted_as_itself(tx: Connection, state: State) -> None:
    started(tx)
    if state is State.RUNNING:
        put(tx)
        run(tx)
    else:
        bring(tx, state)
    assert {name: count for name, count in views.plan(tx, "line").counts.items() if count} == {state: 1}


def test_the_status_follows_the_run(tx: Connection) -> None:
    plan(tx)
    put(tx, 2)
    plans.start(tx, "line", actor=ACTOR)
    assert status(tx) is Status.RUNNING
    broken = end(tx, BROKEN)
    assert status(tx) is Status.HALTED
    decision.skip(tx, broken, actor=ACTOR)
    plans.pause(tx, "line", actor=ACTOR)
    assert status(tx) is Status.PAUSED
    plans.start(tx, "line", actor=ACTOR)
    end(tx)
    feed(tx)
    assert status(tx) is Status.DRAINED


def test_a_failure_under_continue_does_not_halt_and_stays_listed(tx: Connection) -> None:
    started(tx, on_failure=OnFailure.CONTINUE)
    put(tx, 2)
    broken = end(tx, BROKEN)
    found = views.plan(tx, "line")
    assert (found.status, found.unresolved) == (Status.RUNNING, 1)
    assert ids(lines.unresolved(tx, found.id)) == [broken]


def test_what_is_settled_is_counted_since_the_latest_run_began(tx: Connection) -> None:
    started(tx)
    end_one = put(tx)[0]
    end(tx)
    feed(tx)
    tx.execute(text("update relevo.item set settled_at = now() - interval '1 hour' where id = :id"), {"id": end_one})
    tx.execute(text("update relevo.run set started_at = now() - interval '2 hours'"))
    assert views.plan(tx, "line").counts[State.SUCCEEDED] == 1
    plans.start(tx, "line", actor=ACTOR)
    assert views.plan(tx, "line").counts[State.SUCCEEDED] == 0


def test_the_line_is_paged_in_its_order(tx: Connection) -> None:
    made = plan(tx)
    put(tx, 5)
    front = put(tx, to=First())
    seen, after = list[int](), None
    for _ in range(3):
        page = lines.waiting(tx, made.id, limit=2, after=after)
        seen += ids(page.items)
        after = page.next
    assert seen == order(tx)
    assert seen[0] == front[0]
    assert after is None


def test_a_page_that_ends_with_the_line_has_no_next(tx: Connection) -> None:
    made = plan(tx)
    put(tx, 2)
    assert lines.waiting(tx, made.id, limit=2).next is None
    assert lines.waiting(tx, made.id, limit=1).next is not None


def test_a_cursor_survives_its_text_form() -> None:
    cursor = Cursor(Decimal("-3.50000000000000000001"), 2**63 - 1)
    assert Cursor.parse(str(cursor)) == cursor


@pytest.mark.parametrize("written", ["", ":", "1", "x:1", "1:x", "nan:1", "inf:1", "1e99:1", "1:-1", f"1:{2**63}", "1:2:3"])
def test_what_is_no_cursor_is_refused(written: str) -> None:
    with pytest.raises(Invalid, match=r"^cursor: "):
        Cursor.parse(written)


@pytest.mark.parametrize("limit", [-1, 10_001])
def test_a_limit_out_of_range_is_refused(tx: Connection, limit: int) -> None:
    with pytest.raises(Invalid, match=r"^limit: "):
        lines.waiting(tx, plan(tx).id, limit=limit)


def test_postponed_items_stand_in_the_order_of_their_return(tx: Connection) -> None:
    made = plan(tx)
    late, soon = put(tx, 2)
    items.postpone(tx, late, TOMORROW + timedelta(hours=1), actor=ACTOR)
    items.postpone(tx, soon, TOMORROW, actor=ACTOR)
    assert ids(lines.postponed(tx, made.id)) == [soon, late]
    assert lines.waiting(tx, made.id, limit=9).items == []


def test_what_is_out_and_what_was_settled_last(tx: Connection) -> None:
    started(tx)
    made = plans.get(tx, "line")
    first, second = put(tx, 2)
    end(tx)
    feed(tx)
    assert ids(lines.settled(tx, made.id, limit=5)) == [first]
    assert ids(lines.out(tx, made.id)) == [second]


def test_an_interruption_is_pending_until_its_session_is_closed(tx: Connection) -> None:
    started(tx)
    put(tx)
    lose(tx, run(tx))
    head = views.plan(tx, "line").head
    assert head is not None
    assert (head.state, head.pending) == (State.INTERRUPTED, True)
    tx.execute(text("update relevo.dispatch set ended_at = now()"))
    head = views.plan(tx, "line").head
    assert head is not None
    assert not head.pending


def test_long_texts_are_cut_in_lists_and_whole_in_the_history(tx: Connection) -> None:
    made = plan(tx)
    (item,) = put(tx, title="t" * 600, kwargs={"text": "x" * 600})
    (line,) = lines.waiting(tx, made.id, limit=1).items
    assert (len(line.title), len(line.arguments)) == (500, 500)
    assert history(tx, item).item.title == "t" * 600


def test_arguments_of_a_line_are_named_or_positional(tx: Connection) -> None:
    made = plan(tx)
    put(tx, args=[1])
    put(tx, kwargs={"a": 1})
    assert [line.arguments for line in lines.waiting(tx, made.id, limit=2).items] == ["[1]", '{"a": 1}']


def test_a_history_has_attempts_with_their_output_and_the_trail(tx: Connection) -> None:
    started(tx)
    (item,) = put(tx)
    claimed = run(tx)
    attempt.write_output(tx, item, 1, head="begin", tail="end", left_out=7)
    finish.finish(tx, claimed, BROKEN)
    decision.retry(tx, item, actor="ana", note="again")
    finish.finish(tx, run(tx), DONE)
    found = history(tx, item)
    assert found.now == clock.now(tx)
    assert [(each.number, each.outcome) for each in found.attempts] == [(1, Outcome.FAILED), (2, Outcome.SUCCEEDED)]
    first = found.attempts[0]
    assert first.output is not None
    assert (first.output.head, first.output.tail, first.output.left_out) == ("begin", "end", 7)
    assert (first.host, first.worker, first.pid) == (PROCESS.host, PROCESS.worker, PROCESS.pid)
    assert found.attempts[1].output is None
    retried = found.events[-1]
    assert (retried.actor, retried.action, retried.reason) == ("ana", "retry", "again")


def test_a_history_shows_the_attempt_that_runs_with_its_output_so_far(tx: Connection) -> None:
    started(tx)
    (item,) = put(tx)
    run(tx)
    attempt.write_output(tx, item, 1, head="so far", tail="", left_out=0)
    (running,) = history(tx, item).attempts
    assert (running.number, running.outcome, running.ended_at) == (1, None, None)
    assert running.output is not None
    assert running.output.head == "so far"


def test_the_history_of_an_unknown_item_is_refused(tx: Connection) -> None:
    with pytest.raises(UnknownItem):
        history(tx, 1)


def test_a_session_lives_while_its_lock_is_held(engine: Engine) -> None:
    with engine.begin() as tx:
        dead_session(tx)
    with engine.connect() as process:
        session.open_(process, PROCESS)
        process.commit()
        with engine.begin() as tx:
            assert views.live_sessions(tx) == 1
        process.invalidate()
    deadline = time.monotonic() + 60
    while True:
        with engine.begin() as tx:
            if views.live_sessions(tx) == 0:
                return
        assert time.monotonic() < deadline, "a session whose connection is closed is still taken for a living one"


def test_a_page_of_a_long_line_is_read_from_the_index(engine: Engine) -> None:
    with engine.begin() as tx:
        made = plan(tx)
        put(tx, 20_000)
    vacuum(engine, "item")
    with engine.connect() as connection:
        after = lines.waiting(connection, made.id, limit=10_000).next
        assert after is not None
        values = {"plan_id": made.id, "position": after.position, "id": after.id, "limit": 20}
        shown = "\n".join(connection.execute(text(f"explain (analyze, buffers off) {lines.PAGE.text}"), values).scalars())
        assert "item_waiting" in shown
        assert "Sort" not in shown


def test_a_streams_past_is_counted_up_to_a_bound(tx: Connection) -> None:
    made = plan(tx, concurrency=2)
    tx.execute(
        text("insert into relevo.item (plan_id, position, task, state, settled_at, attempts) "
             "select :id, n, 'noop', 'succeeded', now(), 1 from generate_series(1, :count) n"),
        {"id": made.id, "count": views.LATEST + 7},
    )  # fmt: skip
    assert views.plan(tx, "line").counts[State.SUCCEEDED] == views.LATEST
