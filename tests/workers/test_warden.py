"""The warden ends with its worker, whatever is away."""

import pytest
from sqlalchemy import Engine, text

from ordering import db
from tests.patience import wait_until
from workers import gate, process
from workers.warden import Warden

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


def test_it_ends_at_once_while_postgres_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "_database_away", False)
    warden = Warden(db.engine(NOWHERE), process.myself("test"))
    warden.start()
    wait_until(lambda: gate._database_away, 60, "it notices that Postgres is away")
    warden.refused("nothing that could be recorded", 0, "", None, None)
    warden.end()
    wait_until(lambda: not warden.is_alive(), 30, "it ends")


def test_it_may_be_ended_before_it_was_started() -> None:
    """As by TERM while the worker starts."""
    Warden(db.engine(NOWHERE), process.myself("test")).end()


def test_a_job_that_postgres_refuses_is_dropped_and_the_next_one_done(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "_database_away", False)

    def refused() -> None:
        with engine.begin() as tx:
            tx.execute(text("select 1 / 0"))

    away: list[bool] = []
    warden = Warden(engine, process.myself("test"))
    warden._do(refused)
    warden._do(lambda: away.append(gate._database_away))
    warden.start()
    wait_until(lambda: away, 60, "it comes to another job")
    assert away == [False], "it takes Postgres to be away"
    warden.end()
    wait_until(lambda: not warden.is_alive(), 30, "it ends before its database does")
