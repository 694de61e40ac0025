"""The tally counts each attempt once, where it is recorded, whatever becomes of sessions and of what retention takes away."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import attempt, finish, head, items, plans, prune, reconcile, session, tally, tasks
from ordering.decide import AlreadyDone, Asleep, Failed, PutBack
from ordering.finish import Verdict
from ordering.model import Claimed, Dispatch, OnFailure, OnInterrupt
from ordering.tally import Total
from ordering.tasks import TaskInfo
from tests.ordering.acts import ACTOR, BROKEN, DONE, PROCESS, claim, dead_session, end, feed, lose, plan, put, run

RETRY = Failed("ValueError", "again", retry_in=timedelta(0))


@pytest.fixture
def line(tx: Connection) -> Connection:
    """A transaction with a started plan `line`, whose run goes on at a failure, and five waiting items."""
    plan(tx, on_failure=OnFailure.CONTINUE)
    put(tx, 5)
    plans.start(tx, "line", actor=ACTOR)
    return tx


def total(tx: Connection, task: str = "noop") -> Total:
    (found,) = [each for each in tally.totals(tx) if each.task == task]
    assert sum(found.waits) >= sum(found.runs)
    return found


def counted(tx: Connection) -> tuple[int, int, int, int]:
    found = total(tx)
    return found.succeeded, found.failed, found.interrupted, found.retries


def test_each_outcome_is_counted_once(line: Connection) -> None:
    end(line, DONE)
    assert counted(line) == (1, 0, 0, 0)
    end(line, BROKEN)
    assert counted(line) == (1, 1, 0, 0)
    end(line, RETRY)
    assert counted(line) == (1, 2, 0, 1)
    assert sum(total(line).waits) == sum(total(line).runs) == 3
    claimed = run(line)
    finish.finish(line, claimed, DONE)
    assert finish.finish(line, claimed, DONE) is not None  # as after a commit whose answer was lost
    assert counted(line) == (2, 2, 0, 1)


def test_what_made_no_attempt_is_not_counted(line: Connection) -> None:
    end(line, DONE)
    before = total(line)
    end(line, AlreadyDone("by hand"))
    end(line, PutBack())
    end(line, Asleep(1, "for long", timedelta(days=1)))
    assert total(line) == before


def test_a_late_result_is_not_counted(line: Connection) -> None:
    claimed = run(line)
    items.cancel(line, claimed.item_id, actor=ACTOR)
    assert counted(line) == (0, 0, 1, 0)
    assert finish.finish(line, claimed, DONE) is None
    assert counted(line) == (0, 0, 1, 0)


def test_an_interruption_is_counted_and_a_requeue_is_a_retry(line: Connection) -> None:
    line.execute(text("update relevo.plan set on_interrupt = 'requeue', max_attempts = 9"))
    claimed = run(line)
    lose(line, claimed, closed=False)
    assert counted(line) == (0, 0, 1, 0)
    reconcile.close(line, session_of(line, claimed), proved=True)
    assert counted(line) == (0, 0, 1, 1)


def test_a_message_that_no_worker_could_take_is_counted_without_its_name(line: Connection) -> None:
    fed = feed(line)
    assert fed is not None
    finish.refuse(line, fed.id, "noop", BROKEN)
    found = total(line, tally.UNKNOWN)
    assert (found.failed, sum(found.waits), sum(found.runs)) == (1, 0, 0)
    # A known task is named: another worker may have it.
    tasks.register(line, [TaskInfo("noop", "relevo")])
    fed = feed(line)
    assert fed is not None
    finish.refuse(line, fed.id, "noop", BROKEN)
    assert total(line).failed == 1


def test_closing_a_session_folds_its_rows_and_changes_no_total(line: Connection) -> None:
    for ended in (DONE, BROKEN, RETRY):
        end(line, ended)
    claimed = run(line)
    before = total(line)
    for each in session.unlocked(line):
        reconcile.close(line, each.id, proved=True)
        assert total(line) == before
    assert line.execute(text("select distinct session_id from relevo.tally")).scalars().all() == [tally.NOBODY]
    # A process that comes back after its session was closed adds rows to it again, and they are folded as well.
    finish.finish(line, claimed, DONE)
    assert total(line).succeeded == before.succeeded + 1
    reconcile.close(line, session_of(line, claimed), proved=True)
    assert total(line).succeeded == before.succeeded + 1


def session_of(tx: Connection, claimed: Claimed) -> int:
    found: int = tx.execute(text("select session_id from relevo.dispatch where id = :id"), {"id": claimed.dispatch_id}).scalar_one()
    return found


def test_waits_and_runs_fall_into_their_buckets(line: Connection) -> None:
    line.execute(text("update relevo.item set created_at = now() - interval '2 minutes'"))
    claimed = run(line)
    finish.finish_all(line, [Verdict(claimed, DONE, timedelta(0), timedelta(seconds=0.2))])
    found = total(line)
    assert found.waits == [int(bound == 300.0) for bound in (*tally.BOUNDS, None)]
    assert found.runs == [int(bound == 0.5) for bound in (*tally.BOUNDS, None)]
    assert 119 < found.wait_seconds < 125
    assert found.run_seconds == pytest.approx(0.2)
    # A second try waits from when it was due, not from when its item was added.
    finish.finish(line, run(line), RETRY)
    again = run(line)
    finish.finish_all(line, [Verdict(again, DONE, timedelta(0), timedelta(days=2))])
    assert total(line).waits[:1] == [1]
    assert total(line).runs[-1] == 1


def stream(tx: Connection, count: int) -> list[Dispatch]:
    """What a stream of that many items hands out first: two dispatches, of an item each."""
    made = plan(tx, "stream", concurrency=2)
    put(tx, count, plan="stream")
    return head.feed(tx, made.id, serial=False)


def test_the_verdicts_of_a_batch_are_counted_by_one_row(tx: Connection) -> None:
    session_id = dead_session(tx)
    for each in stream(tx, 42):
        (one,) = attempt.claim(tx, each.id, session_id=session_id)
        finish.finish(tx, one, DONE)
    tx.execute(text("update relevo.dispatch set claimed_at = ended_at - interval '1 ms'"))
    fed = head.feed(tx, plans.get(tx, "stream").id, serial=False)
    for each in fed:
        runs = attempt.claim(tx, each.id, session_id=session_id)
        assert len(runs) == 20
        finish.finish_all(tx, [Verdict(one, BROKEN if number % 4 == 3 else DONE) for number, one in enumerate(runs)])
    assert counted(tx) == (32, 10, 0, 10)
    assert sum(total(tx).waits) == 42
    assert tx.execute(text("select session_id from relevo.tally")).scalars().all() == [session_id]


def test_retention_takes_nothing_from_a_total(line: Connection) -> None:
    for ended in (DONE, BROKEN):
        end(line, ended)
    before = tally.totals(line)
    line.execute(text("update relevo.plan set keep = '1 second'"))
    line.execute(text("update relevo.item set settled_at = settled_at - interval '1 day' where settled_at is not null"))
    line.execute(text("update relevo.dispatch set ended_at = ended_at - interval '1 day' where ended_at is not null"))
    gone = sum(prune.step(line, sweep).gone for sweep in prune.due(line))
    assert gone
    assert tally.totals(line) == before


def test_an_update_stays_in_its_page(engine: Engine) -> None:
    with engine.begin() as tx:
        plan(tx)
        put(tx, 30)
        plans.start(tx, "line", actor=ACTOR)
        session_id = dead_session(tx)
    for _ in range(30):
        with engine.begin() as tx:
            fed = feed(tx)
            assert fed is not None
            (claimed,) = attempt.claim(tx, fed.id, session_id=session_id)
            finish.finish(tx, claimed, DONE)
    # Postgres gathers such figures, and shows them some time after the transaction.
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with engine.connect() as tx:
            found = tx.execute(text("select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where relname = 'tally'")).one()
        if found.n_tup_upd == 29:
            break
        time.sleep(0.2)
    # All but what found its page full while something else on the server still looked at the old rows; with an index on a figure, none.
    assert found.n_tup_upd == 29
    assert found.n_tup_hot_upd >= 25


def at_once(engine: Engine, *verbs: Callable[[Connection], object]) -> None:
    """Run the verbs in transactions that begin together; raises what one of them raised."""
    together, raised = threading.Barrier(len(verbs)), list[BaseException]()

    def one(verb: Callable[[Connection], object]) -> None:
        try:
            with engine.begin() as tx:
                tx.execute(text("set local deadlock_timeout = '20ms'"))
                together.wait(60)
                verb(tx)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=one, args=(verb,)) for verb in verbs]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
        assert not each.is_alive()
    assert not raised, raised


def test_sessions_that_close_at_once_do_not_get_into_each_others_way(engine: Engine) -> None:
    sessions = list[int]()
    with engine.begin() as tx:
        for name in ("a", "b", "c"):
            plan(tx, name, on_interrupt=OnInterrupt.REQUEUE)
        for _ in range(4):
            sessions.append(tx.execute(session.INSERT, vars(PROCESS)).scalar_one())
            for plan_id in tx.execute(text("select id from relevo.plan order by random()")).scalars().all():
                for task in ("y", "x"):
                    tx.execute(
                        text("insert into relevo.tally (session_id, plan_id, task, succeeded) values (:s, :p, :t, 1)"),
                        {"s": sessions[-1], "p": plan_id, "t": task},
                    )
    at_once(engine, *(lambda tx, each=each: tally.fold(tx, each) for each in sessions))
    with engine.connect() as tx:
        assert [each.succeeded for each in tally.totals(tx)] == [4] * 6
        assert tx.execute(text("select count(*) from relevo.tally")).scalar_one() == 6


def test_a_session_waits_for_no_other(engine: Engine) -> None:
    with engine.begin() as tx:
        fed = stream(tx, 2)
        runs = [claim(tx, each) for each in fed]
    with engine.begin() as one, engine.begin() as two:
        two.execute(text("set local lock_timeout = '5s'"))
        for tx, claimed in zip((one, two), runs, strict=True):
            finish.finish(tx, claimed, DONE)
    with engine.connect() as tx:
        assert total(tx).succeeded == 2


def test_what_no_dispatch_names_is_counted_nowhere(tx: Connection) -> None:
    finish.refuse(tx, UUID(int=1), "noop", BROKEN)
    assert tally.totals(tx) == []
