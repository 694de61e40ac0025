"""One dispatch of several items in a pool process that is told to stop, or that cannot run them."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import add, decision, head, items, plans, reconcile
from ordering.model import Dispatch, NewItem, OnInterrupt
from ordering.session import Session
from tests.ordering.acts import ACTOR, assert_sound, dead_session, plan
from tests.workers.pool_sessions import pool_session
from tests.workers.worker_process import until
from workers import celery, pool, process
from workers.publish import Publisher
from workers.session import PoolSession

begun: list[str] = []
meanwhile: list[Callable[[], None]] = []


@celery.task(name="dispatch.say")
def say(what: str) -> None:
    begun.append(what)
    if what in ("stop", "cut"):
        for act in meanwhile:
            act()
    if what == "stop":
        signal.raise_signal(signal.SIGTERM)
    if what == "stubborn":
        with contextlib.suppress(BaseException):
            signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def worker(engine: Engine, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PoolSession]:
    """This process, as a pool process of a worker; no plan feeds."""
    begun.clear()
    meanwhile.clear()
    with pool_session(database_url) as mine:
        monkeypatch.setattr(pool, "_session", mine)
        monkeypatch.setattr(pool, "_publisher", Publisher(celery))
        yield mine


def handed_out(engine: Engine, *words: str) -> Dispatch:
    """One dispatch of a paused stream, with an item for each word."""
    with engine.begin() as tx:
        made = plan(tx, concurrency=2, on_interrupt=OnInterrupt.HOLD)
        tx.execute(text("insert into relevo.dispatch (plan_id, queue, task, claimed_at, session_id, ended_at, size) "
                        "values (:plan, 'relevo', 'dispatch.say', now(), :session, now(), 100)"),
                   {"plan": made.id, "session": dead_session(tx)})  # fmt: skip
        add.add_many(tx, "line", [NewItem("dispatch.say", args=[word]) for word in (*words, *words)], actor=ACTOR)
        (first,) = [each for each in head.feed(tx, made.id, serial=False) if carried(tx, each)[0] == 1]
        assert carried(tx, first) == [*range(1, len(words) + 1)]
        plans.pause(tx, "line", actor=ACTOR)
        return first


def carried(tx: Connection, fed: Dispatch) -> list[int]:
    return list(tx.execute(text("select id from relevo.item where dispatch_id = :id order by id"), {"id": fed.id}).scalars())


def run(fed: Dispatch) -> Any:
    say.push_request(id=str(fed.id), called_directly=False)
    try:
        return say()
    finally:
        say.pop_request()


def states(engine: Engine) -> list[tuple[str, str, int]]:
    with engine.begin() as tx:
        assert_sound(tx)
        return [(each.args[0], str(each.state), each.attempts) for each in (items.get(tx, item_id) for item_id in range(1, 5))]


def known(tx: Connection, worker: PoolSession) -> Session:
    row = tx.execute(text("select * from relevo.session where id = :id"), {"id": worker.id}).one()
    return Session(row.id, process.myself("worker"), row.opened_at, None)


def test_told_to_stop_what_has_not_begun_waits_again(engine: Engine, worker: PoolSession) -> None:
    fed = handed_out(engine, "a", "stop", "c", "d")
    with pytest.raises(SystemExit):
        run(fed)
    assert begun == ["a", "stop"]
    assert states(engine) == [("a", "succeeded", 1), ("stop", "running", 0), ("c", "waiting", 0), ("d", "waiting", 0)]


def test_after_a_body_that_bears_a_stop_no_other_begins(engine: Engine, worker: PoolSession) -> None:
    fed = handed_out(engine, "a", "stubborn", "c", "d")
    with pytest.raises(SystemExit):
        run(fed)
    assert begun == ["a", "stubborn"]
    assert states(engine) == [("a", "succeeded", 1), ("stubborn", "succeeded", 1), ("c", "waiting", 0), ("d", "waiting", 0)]


def test_marked_by_the_stop_nobody_but_the_cut_one_is_interrupted(engine: Engine, worker: PoolSession) -> None:
    fed = handed_out(engine, "a", "stop", "c", "d")

    def mark() -> None:
        with engine.begin() as tx:
            reconcile.interrupt(tx, known(tx, worker), reason="shutdown", counts=False, dispatch_id=fed.id)

    meanwhile.append(mark)
    with pytest.raises(SystemExit):
        run(fed)
    assert states(engine) == [("a", "succeeded", 1), ("stop", "interrupted", 1), ("c", "waiting", 0), ("d", "waiting", 0)]
    with engine.begin() as tx:
        assert tx.execute(text("select array_agg(distinct batch_limit) from relevo.item")).scalar_one() == [None]


def test_a_process_that_cannot_run_its_dispatch_does_not_vouch_for_it(
    engine: Engine, worker: PoolSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed = handed_out(engine, "a", "b", "c", "d")

    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if thread.name == "relevo-outcomes":
            raise RuntimeError("can't start new thread")
        start(thread)  # the session's watch needs one too, at a time of its own

    monkeypatch.setattr(threading.Thread, "start", refused)
    with pytest.raises(SystemExit):
        run(fed)
    assert begun == []


def test_what_was_decided_while_the_process_was_cut_off_does_not_begin(engine: Engine, worker: PoolSession) -> None:
    fed = handed_out(engine, "a", "cut", "c", "d")

    def cut_off() -> None:
        with worker._lock:
            backend = worker.transact(lambda tx, _: tx.execute(text("select pg_backend_pid()")).scalar_one())
            with engine.begin() as tx:
                assert tx.execute(text("select pg_terminate_backend(:pid, 20000)"), {"pid": backend}).scalar_one()
            with engine.begin() as tx:
                reconcile.interrupt(tx, known(tx, worker), reason="process lost", counts=True)
                reconcile.close(tx, known(tx, worker).id, proved=False)
                decision.retry(tx, 3, actor=ACTOR)
            worker._drop()
        until(lambda: worker._connection, 30, "the process has its session again")

    meanwhile.append(cut_off)
    run(fed)
    assert begun == ["a", "cut", "d"]
    assert states(engine) == [("a", "succeeded", 1), ("cut", "succeeded", 1), ("c", "waiting", 1), ("d", "succeeded", 1)]
