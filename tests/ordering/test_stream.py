"""Streams: how many items travel together, how many dispatches are out, and what one of several costs the others."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import add, attempt, db, decision, finish, head, items, plans, reconcile, session, stream, tasks
from ordering.decide import PutBack
from ordering.errors import NotAllowed
from ordering.finish import Verdict
from ordering.items import Edit
from ordering.model import Claimed, Dispatch, NewItem, OnInterrupt, State
from ordering.tasks import TaskInfo
from tests.ordering.acts import (
    ACTOR,
    BROKEN,
    DONE,
    LONG_AGO,
    TOMORROW,
    assert_sound,
    dead_session,
    events,
    order,
    outcomes,
    plan,
    put,
    state,
)


def out(tx: Connection, plan_name: str = "line") -> list[Dispatch]:
    return head.feed(tx, plans.get(tx, plan_name).id, serial=False)


def sizes(tx: Connection, fed: list[Dispatch]) -> list[int]:
    found = text("select size from relevo.dispatch where id = :id")
    return sorted(tx.execute(found, {"id": each.id}).scalar_one() for each in fed)


def took(tx: Connection, seconds: float, plan_name: str = "line", task: str = "noop") -> None:
    """Past dispatches of one item that took so long."""
    tx.execute(
        text("""insert into relevo.dispatch (plan_id, queue, task, claimed_at, session_id, ended_at)
            select :plan, 'relevo', :task, now() - make_interval(secs => :seconds), :session, now() from generate_series(1, 5)"""),
        {"plan": plans.get(tx, plan_name).id, "task": task, "seconds": seconds, "session": dead_session(tx)},
    )


def batch(tx: Connection, count: int) -> list[Claimed]:
    """A claimed dispatch with that many items."""
    plan(tx, concurrency=2)
    took(tx, 0.001)
    put(tx, 2 * count)
    (first, _) = out(tx)
    runs = attempt.claim(tx, first.id, session_id=dead_session(tx))
    assert [run.size for run in runs] == [count] * count
    return runs


@pytest.mark.parametrize(
    ("due", "dispatches", "most", "seconds", "size"),
    [
        (1, 4, 100, 0.001, 1),  # light load: one
        (4, 4, 100, 0.001, 1),
        (40, 4, 100, 0.001, 10),  # a backlog: shared out
        (5000, 4, 100, 0.001, 100),
        (5000, 4, 100, 0.05, 20),  # about a second of work
        (5000, 4, 100, 3.0, 1),
        (5000, 4, 100, None, 1),  # not known yet
        (5000, 4, 1, 0.001, 1),
        (3, 2, 100, 0.0, 2),
    ],
)
def test_a_batch_grows_with_the_backlog_up_to_a_second(due: int, dispatches: int, most: int, seconds: float | None, size: int) -> None:
    assert stream.batch_size(due, dispatches, most, seconds) == size


def test_nothing_known_goes_one_by_one_and_a_backlog_together(tx: Connection) -> None:
    plan(tx, concurrency=4)
    line = put(tx, 300)
    fed = out(tx)
    assert sizes(tx, fed) == [1, 1, 1, 1]
    for each in fed:
        finish.finish_all(tx, [Verdict(run, DONE) for run in attempt.claim(tx, each.id, session_id=dead_session(tx))])
    tx.execute(text("update relevo.dispatch set claimed_at = ended_at - interval '5 milliseconds' where ended_at is not null"))
    assert sizes(tx, out(tx)) == [74, 74, 74, 74]
    assert order(tx) == []
    assert len(line) == 4 + 4 * 74
    assert_sound(tx)


def test_slow_work_goes_in_small_batches(tx: Connection) -> None:
    plan(tx, concurrency=2)
    took(tx, 0.25)
    put(tx, 100)
    assert sizes(tx, out(tx)) == [4, 4]


def test_a_dispatch_has_one_task_and_keeps_its_limit(tx: Connection) -> None:
    tasks.register(tx, [TaskInfo("few", "other", batch_size=3), TaskInfo("noop", "relevo")])
    plan(tx, concurrency=6)
    for task in ("noop", "few"):
        took(tx, 0.001, task=task)
    for number in range(12):
        add.add(tx, "line", NewItem("few" if number % 2 else "noop"), actor=ACTOR)
    fed = out(tx)
    found = tx.execute(text("select d.task, d.queue, array_agg(distinct i.task) as tasks, count(*) from relevo.dispatch d "
                            "join relevo.item i on i.dispatch_id = d.id group by d.id, d.task, d.queue")).all()  # fmt: skip
    assert len(fed) == len(found) == 6
    assert all(row.tasks == [row.task] and (row.queue == "other") == (row.task == "few") for row in found)
    took(tx, 0.001, task="few")
    for each in fed:
        finish.finish_all(tx, [Verdict(run, DONE) for run in attempt.claim(tx, each.id, session_id=dead_session(tx))])
    add.add_many(tx, "line", [NewItem("few")] * 60, actor=ACTOR)
    assert max(sizes(tx, out(tx))) == 3


def test_no_more_dispatches_than_its_concurrency_however_many_feed(engine: Engine) -> None:
    with engine.begin() as tx:
        made = plan(tx, concurrency=3)
        put(tx, 60)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: db.transact(engine, lambda tx: head.feed(tx, made.id, serial=False)), range(8)))
    with engine.begin() as tx:
        assert tx.execute(text("select count(*) from relevo.dispatch where ended_at is null")).scalar_one() == 3
        assert_sound(tx)


def test_outcomes_are_recorded_bit_by_bit_and_the_last_one_ends_the_dispatch(tx: Connection) -> None:
    runs = batch(tx, 4)
    assert finish.finish_all(tx, [Verdict(runs[0], DONE), Verdict(runs[1], BROKEN, timedelta(seconds=1))]) == ["succeeded", "waiting"]
    open_ = text("select ended_at is null from relevo.dispatch where id = :id")
    assert tx.execute(open_, {"id": runs[0].dispatch_id}).scalar_one()
    assert finish.finish_all(tx, [Verdict(run, DONE) for run in runs[2:]]) == ["succeeded", "succeeded"]
    assert not tx.execute(open_, {"id": runs[0].dispatch_id}).scalar_one()
    assert [outcomes(tx, run.item_id) for run in runs] == [["succeeded"], ["failed"], ["succeeded"], ["succeeded"]]
    assert [items.get(tx, run.item_id).tries for run in runs] == [1, 1, 1, 1]
    assert_sound(tx)


def test_a_verdict_recorded_twice_changes_nothing(tx: Connection) -> None:
    runs = batch(tx, 3)
    verdicts = [Verdict(runs[0], DONE), Verdict(runs[1], BROKEN)]
    once = finish.finish_all(tx, verdicts)
    trail = events(tx)
    assert finish.finish_all(tx, verdicts) == once
    assert events(tx) == trail
    assert_sound(tx)


def test_an_item_costs_three_row_writes(engine: Engine) -> None:
    written = text("""
        select sum(n_tup_ins + n_tup_upd) filter (where relname = 'item') as items,
            coalesce(sum(n_tup_ins + n_tup_upd) filter (where relname in ('attempt', 'output', 'step')), 0) as others
        from pg_stat_xact_user_tables where schemaname = 'relevo'
    """)
    with engine.begin() as tx:
        runs = batch(tx, 50)
        for run in runs:
            assert run.size == 50
        finish.finish_all(tx, [Verdict(run, DONE) for run in runs])
        row = tx.execute(written).one()
    assert row.items == 100 * 2 + 50  # all were added and fed, half of them ended
    assert row.others == 0


def test_a_lost_process_costs_no_neighbour_a_try(tx: Connection) -> None:
    runs = batch(tx, 8)
    finish.finish_all(tx, [Verdict(run, DONE) for run in runs[:3]])
    lost = lose(tx, runs)
    assert {items.get(tx, run.item_id).tries for run in runs[3:]} == {0}
    reconcile.close(tx, lost, proved=True)
    assert order(tx) == [run.item_id for run in runs[3:]]
    assert sizes(tx, out(tx)) == [4]
    assert_sound(tx)


def test_the_culprit_comes_to_stand_alone_and_pays(tx: Connection) -> None:
    plan(tx, concurrency=2, max_attempts=2)
    took(tx, 0.001)
    line = put(tx, 32)
    culprit = line[11]
    for _ in range(40):
        for each in out(tx):
            runs = attempt.claim(tx, each.id, session_id=dead_session(tx))
            before = [run for run in runs if run.item_id < culprit]
            if any(run.item_id == culprit for run in runs):
                if before:
                    finish.finish_all(tx, [Verdict(run, DONE) for run in before])
                reconcile.close(tx, lose(tx, runs), proved=True)
            else:
                finish.finish_all(tx, [Verdict(run, DONE) for run in runs])
    assert [item for item in line if state(tx, item) is not State.SUCCEEDED] == [culprit]
    assert (state(tx, culprit), items.get(tx, culprit).tries) == (State.INTERRUPTED, 2)
    assert {items.get(tx, item).tries for item in line if item != culprit} == {1}
    assert_sound(tx)


def lose(tx: Connection, runs: list[Claimed]) -> int:
    """Mark what the dispatch's process ran as interrupted; its session's id."""
    mine = tx.execute(text("select session_id from relevo.dispatch where id = :id"), {"id": runs[0].dispatch_id}).scalar_one()
    (lost,) = [each for each in session.unlocked(tx) if each.id == mine]
    reconcile.interrupt(tx, lost, reason="process lost", counts=True)
    return lost.id


def test_what_is_put_back_goes_out_in_smaller_batches(tx: Connection) -> None:
    runs = batch(tx, 8)
    assert set(finish.finish_all(tx, [Verdict(run, PutBack(4)) for run in runs])) == {"waiting"}
    assert {(items.get(tx, run.item_id).attempts, items.get(tx, run.item_id).tries) for run in runs} == {(0, 0)}
    assert sizes(tx, out(tx)) == [4]
    assert_sound(tx)


def test_one_of_several_leaves_before_the_claim_and_the_others_run(tx: Connection) -> None:
    plan(tx, concurrency=2)
    took(tx, 0.001)
    put(tx, 10)
    fed = out(tx)[0]
    mine = [row.id for row in tx.execute(text("select id from relevo.item where dispatch_id = :id order by position"), {"id": fed.id})]
    items.cancel(tx, mine[0], actor=ACTOR)
    items.postpone(tx, mine[1], TOMORROW, actor=ACTOR)
    items.edit(tx, mine[2], Edit(task="other"), actor=ACTOR)
    runs = attempt.claim(tx, fed.id, session_id=dead_session(tx))
    assert [run.item_id for run in runs] == mine[3:]
    finish.finish_all(tx, [Verdict(run, DONE) for run in runs])
    assert_sound(tx)


def test_the_last_to_leave_ends_the_dispatch(tx: Connection) -> None:
    plan(tx, concurrency=2)
    took(tx, 0.001)
    put(tx, 4)
    fed = out(tx)[0]
    for item in tx.execute(text("select id from relevo.item where dispatch_id = :id"), {"id": fed.id}).scalars().all():
        items.cancel(tx, item, actor=ACTOR)
    assert tx.execute(text("select ended_at is not null from relevo.dispatch where id = :id"), {"id": fed.id}).scalar_one()


def test_one_that_runs_among_several_is_not_cancelled(tx: Connection) -> None:
    runs = batch(tx, 3)
    with pytest.raises(NotAllowed, match="batch of 3"):
        items.cancel(tx, runs[1].item_id, actor=ACTOR)
    assert state(tx, runs[1].item_id) is State.RUNNING


def test_a_decision_about_one_leaves_its_neighbours_to_their_process(tx: Connection) -> None:
    runs = batch(tx, 3)
    lose(tx, runs)
    decision.skip(tx, runs[0].item_id, actor=ACTOR)
    assert finish.finish_all(tx, [Verdict(run, DONE) for run in runs]) == [None, "succeeded", "succeeded"]
    assert state(tx, runs[0].item_id) is State.SKIPPED
    assert events(tx, runs[0].item_id)[-1] == "fence"
    assert_sound(tx)


def test_backoffs_wait_out_of_the_way_and_become_ready(tx: Connection) -> None:
    made = plan(tx, concurrency=2)
    (first, second) = put(tx, 2)
    for each in out(tx):
        finish.finish_all(tx, [Verdict(run, BROKEN) for run in attempt.claim(tx, each.id, session_id=dead_session(tx))])
    assert out(tx) == []
    assert head.release_due(tx) == set()
    tx.execute(text("update relevo.item set not_before = :past where id = :id"), {"past": LONG_AGO, "id": second})
    assert head.ready(tx) == []
    assert head.release_due(tx) == {made.id}
    assert head.ready(tx) == [(made.id, False)]
    assert len(out(tx)) == 1
    assert (state(tx, first), state(tx, second)) == (State.WAITING, State.DISPATCHED)


def test_what_turns_out_to_live_goes_out_in_batches_as_before(tx: Connection) -> None:
    runs = batch(tx, 8)
    lose(tx, runs)
    for run in runs:
        assert attempt.restore(tx, run.item_id, run.dispatch_id)
    finish.finish_all(tx, [Verdict(run, PutBack()) for run in runs])
    (fed,) = out(tx)
    again = attempt.claim(tx, fed.id, session_id=dead_session(tx))
    assert [run.size for run in again] == [8] * 8
    finish.finish_all(tx, [Verdict(run, PutBack(2)) for run in again])
    assert sizes(tx, out(tx)) == [2]


def test_who_is_to_be_requeued_travels_apart_from_who_is_not(tx: Connection) -> None:
    plan(tx, concurrency=2)
    took(tx, 0.001)
    for wish in (OnInterrupt.REQUEUE, OnInterrupt.HOLD) * 4:
        put(tx, 1, on_interrupt=wish)
    fed = [attempt.claim(tx, each.id, session_id=dead_session(tx)) for each in out(tx)]
    assert sorted(len(runs) for runs in fed) == [4, 4]
    assert all(len({run.on_interrupt for run in runs}) == 1 for runs in fed)
