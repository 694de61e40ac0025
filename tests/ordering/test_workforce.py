"""Who works is told by the locks, what they run by the dispatches, and what the lost ones left by their attempts."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import attempt, db, decision, finish, head, items, plans, reconcile, session, tasks
from ordering.model import Claimed, OnInterrupt, State
from ordering.tasks import TaskInfo
from ordering.workforce import Workforce, workforce
from tests.ordering.acts import ACTOR, DONE, PROCESS, plan, put


@pytest.fixture
def process(engine: Engine) -> Iterator[Connection]:
    """The connection of a living pool process, without a session yet."""
    with engine.connect() as connection:
        yield connection


def seen(engine: Engine) -> Workforce:
    with engine.begin() as tx:
        return workforce(tx)


def open_session(process: Connection) -> int:
    with process.begin():
        return session.open_(process, PROCESS)


def hand_out(process: Connection, session_id: int, name: str, *, serial: bool) -> list[Claimed]:
    with process.begin():
        fed = head.feed(process, plans.get(process, name).id, serial=serial)
    with process.begin():
        return [run for each in fed for run in attempt.claim(process, each.id, session_id=session_id)]


def test_only_who_holds_its_lock_works(engine: Engine, process: Connection) -> None:
    assert seen(engine).workers == []
    with engine.begin() as tx:
        tx.execute(session.INSERT, vars(PROCESS))  # a row says nothing
    session_id = open_session(process)
    (worker,) = seen(engine).workers
    assert (worker.session, worker.worker, worker.host, worker.pid) == (session_id, PROCESS.worker, PROCESS.host, PROCESS.pid)
    assert (worker.runs, worker.items) == (0, [])
    process.invalidate()
    assert seen_without(engine, session_id)


def seen_without(engine: Engine, session_id: int) -> bool:
    """Whether it is gone; its server process notices the end of the connection some milliseconds later."""
    import time

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if session_id not in [each.session for each in seen(engine).workers]:
            return True
        time.sleep(0.02)
    return False


def test_what_a_process_runs_is_shown_until_it_ends(engine: Engine, process: Connection) -> None:
    with engine.begin() as tx:
        plan(tx)
        put(tx, 2, title="Audit")
        plans.start(tx, "line", actor=ACTOR)
    session_id = open_session(process)
    (claimed,) = hand_out(process, session_id, "line", serial=True)
    (worker,) = seen(engine).workers
    assert worker.runs == 1
    (item,) = worker.items
    assert (item.id, item.plan, item.title, item.task, item.state) == (claimed.item_id, "line", "Audit", "noop", State.RUNNING)
    with process.begin():
        finish.finish(process, claimed, DONE)
    assert seen(engine).workers[0].runs == 0


def test_of_a_batch_the_first_items_are_shown(engine: Engine, process: Connection) -> None:
    with engine.begin() as tx:
        made = plan(tx, "stream", concurrency=2)
        put(tx, 24, plan="stream")
    session_id = open_session(process)
    for claimed in hand_out(process, session_id, "stream", serial=False):
        with process.begin():
            finish.finish(process, claimed, DONE)
    with engine.begin() as tx:
        tx.execute(text("update relevo.dispatch set claimed_at = ended_at - interval '1 ms'"))
        first, _ = head.feed(tx, made.id, serial=False)
    with process.begin():
        runs = attempt.claim(process, first.id, session_id=session_id)
    (worker,) = seen(engine).workers
    assert worker.runs == len(runs) == 11
    assert [each.id for each in worker.items] == [run.item_id for run in runs[:5]]


def test_a_lost_process_is_shown_with_what_it_left(engine: Engine, process: Connection) -> None:
    with engine.begin() as tx:
        plan(tx, on_interrupt=OnInterrupt.HOLD)
        plan(tx, "empty")
        put(tx, 2)
        plans.start(tx, "line", actor=ACTOR)
    quiet = open_session(process)
    session_id = open_session(process)
    (claimed,) = hand_out(process, session_id, "line", serial=True)
    process.invalidate()
    assert seen_without(engine, session_id)
    reconcile.reconcile(engine, lambda _: False)
    found = seen(engine)
    assert found.workers == []
    (lost,) = found.lost  # the other one left nothing, so it ended in peace
    assert (lost.session, lost.reason, lost.pid) == (session_id, "process lost", PROCESS.pid)
    assert quiet < session_id
    assert [(each.id, each.state) for each in lost.items] == [(claimed.item_id, State.INTERRUPTED)]
    with engine.begin() as tx:
        decision.skip(tx, claimed.item_id, actor=ACTOR)
    assert [each.state for each in seen(engine).lost[0].items] == [State.SKIPPED]
    with engine.begin() as tx:
        tx.execute(text("update relevo.attempt set ended_at = ended_at - interval '25 hours'"))
    assert seen(engine).lost == []


def test_a_cancelled_body_is_no_loss(engine: Engine, process: Connection) -> None:
    with engine.begin() as tx:
        plan(tx)
        put(tx, 1)
        plans.start(tx, "line", actor=ACTOR)
    (claimed,) = hand_out(process, open_session(process), "line", serial=True)
    with engine.begin() as tx:
        items.cancel(tx, claimed.item_id, actor=ACTOR)
    assert seen(engine).lost == []


def test_tasks_on_offer_are_listed_by_name(engine: Engine) -> None:
    with engine.begin() as tx:
        tasks.register(tx, [TaskInfo("b", "relevo"), TaskInfo("a", "slow", plan="line", batch=True)])
    assert [(each.name, each.queue, each.plan, each.batch) for each in seen(engine).tasks] == [
        ("a", "slow", "line", True),
        ("b", "relevo", None, False),
    ]


def test_another_databases_locks_are_not_ours(engine: Engine, process: Connection, server_url: str, template: str) -> None:
    from tests import servers

    open_session(process)
    with servers.database(server_url, template) as url:
        other = db.engine(url)
        with other.begin() as tx:
            tx.execute(session.INSERT, vars(PROCESS))
            assert workforce(tx).workers == []
        other.dispose()
