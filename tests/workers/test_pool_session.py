"""The session of a pool process: nothing is written without its lock, and none of its connections' ends leaves it without a session."""

import threading
from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import attempt, finish, head, session
from ordering.decide import Succeeded
from ordering.finish import Verdict
from tests.ordering.acts import plan, put
from tests.workers import pool_sessions
from tests.workers.worker_process import until
from workers import session as the_session
from workers.outcomes import Outcomes
from workers.session import PoolSession

HELD = text("""
    select exists (select from pg_locks where locktype = 'advisory' and classid = :class and objid = :id and objsubid = 2 and granted
        and pid = pg_backend_pid())
""")


@pytest.fixture
def pool_session(database_url: str) -> Iterator[PoolSession]:
    """The session of this process, as that of a pool process."""
    with pool_sessions.pool_session(database_url) as made:
        yield made


def its_lock_is_held(tx: Connection, session_id: int) -> bool:
    return bool(tx.execute(HELD, {"class": session.LOCK_CLASS, "id": session_id}).scalar_one())


def backend(tx: Connection, _: int) -> int:
    found: int = tx.execute(text("select pg_backend_pid()")).scalar_one()
    return found


def end(engine: Engine, backend_pid: int) -> None:
    with engine.begin() as tx:
        assert tx.execute(text("select pg_terminate_backend(:pid, 20000)"), {"pid": backend_pid}).scalar_one()


def test_after_a_failed_try_nothing_is_written_without_the_lock(engine: Engine, pool_session: PoolSession) -> None:
    with pool_session._lock:  # the watch comes too late, as it may
        end(engine, pool_session.transact(backend))
        assert not pool_session.try_transact(lambda tx, _: tx.execute(text("select 1")))
        assert not pool_session.try_transact(lambda tx, _: tx.execute(text("select 1")))
        assert pool_session.transact(its_lock_is_held)


def test_a_connection_that_ends_as_its_session_opens_leaves_a_process_with_a_session(engine: Engine, database_url: str) -> None:
    with engine.begin() as tx:
        tx.execute(
            text("""
            create function public.cut() returns trigger language plpgsql as $$ begin
                perform pg_terminate_backend(pg_backend_pid());
                return null;
            end $$""")
        )
        tx.execute(text("create constraint trigger cut after insert on relevo.session deferrable initially deferred "
                        "for each row execute function public.cut()"))  # fmt: skip
    with pool_sessions.pool_session(database_url) as made:
        until(lambda: made.id is not None or seen_cut(engine), 30, "the first try ends at its commit")
        with engine.begin() as tx:
            tx.execute(text("drop trigger cut on relevo.session"))
        known = text("select count(*) from relevo.session where id = :id")
        assert made.transact(lambda tx, session_id: tx.execute(known, {"id": session_id}).scalar_one()) == 1
        assert made.transact(its_lock_is_held)


def seen_cut(engine: Engine) -> bool:
    """Whether a session's number was taken and its row is not there."""
    with engine.begin() as tx:
        return bool(tx.execute(text("select is_called and not exists (select from relevo.session) from relevo.session_id")).scalar_one())


def test_a_session_that_was_pruned_meanwhile_is_followed_by_another(engine: Engine, pool_session: PoolSession) -> None:
    first = pool_session.transact(lambda _, session_id: session_id)
    with pool_session._lock:
        end(engine, pool_session.transact(backend))
        with engine.begin() as tx:
            tx.execute(text("delete from relevo.session"))
        pool_session._drop()
    known = text("select array_agg(id) from relevo.session")
    found, session_id = pool_session.transact(lambda tx, session_id: (tx.execute(known).scalar_one(), session_id))
    assert found == [session_id] != [first]
    assert pool_session.transact(its_lock_is_held)


def test_a_handler_whose_messages_all_have_their_verdict_is_not_stopped(
    engine: Engine, pool_session: PoolSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(the_session, "stop_body", stopped.append)
    with engine.begin() as tx:
        stream = plan(tx, concurrency=2)
        put(tx)
        (fed,) = head.feed(tx, stream.id, serial=False)
    runs = pool_session.transact(lambda tx, mine: attempt.claim(tx, fed.id, session_id=mine))
    outcomes = Outcomes(pool_session, runs)
    with pool_session.running(runs):
        with pool_session._lock:
            end(engine, pool_session.transact(backend))
            pool_session._drop()
            pool_session._stop_if_requeued()
        assert set(stopped) == {"its session is lost and its item may be requeued elsewhere"}  # once more by the watch, on a slow machine
        outcomes.add(runs[0], Succeeded(None))
        pool_session.transact(lambda tx, _: finish.finish_all(tx, [Verdict(runs[0], Succeeded(None))]))
        before = list(stopped)
        with pool_session._lock:
            end(engine, pool_session.transact(backend))
            pool_session._drop()
            pool_session._stop_if_requeued()
        pool_session.transact(backend)
        assert stopped == before


def test_a_process_whose_session_nobody_watches_ends(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[str] = []

    def refused(_: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(the_session, "stop_body", stopped.append)
    monkeypatch.setattr(threading.Timer, "start", refused)
    with pool_sessions.pool_session(database_url):
        until(lambda: stopped, 30, "the watch has ended")
    assert stopped == ["nobody watches its session"]
