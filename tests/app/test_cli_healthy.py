"""`relevo healthy`: by what Postgres sees of this machine's feeder and worker."""

import socket
from dataclasses import replace

from sqlalchemy import Engine, text

from ordering import db, pulse, session
from tests.app.commands import Relevo
from tests.patience import wait_until
from workers import process


def test_a_feeder_is_healthy_while_it_asks(relevo: Relevo, database_url: str, engine: Engine) -> None:
    answer = relevo("healthy", "feeder")
    assert (answer.code, answer.out) == (1, "No feeder of this machine has asked for anything lately.\n")
    feeder = db.engine(database_url, name="relevo feeder")
    with feeder.connect() as connection:
        connection.execute(text("select 1"))
        answer = relevo("healthy", "feeder")
        assert (answer.code, answer.out) == (0, "A feeder of this machine is at work.\n")
        # One that hangs is connected and asks nothing.
        with engine.begin() as tx:
            assert not pulse.feeds(tx, within=-1.0)
    feeder.dispose()


def test_a_worker_is_healthy_while_a_process_holds_its_session(relevo: Relevo, engine: Engine) -> None:
    answer = relevo("healthy", "worker")
    assert (answer.code, answer.out) == (1, "No pool process of this machine holds a session.\n")
    elsewhere = replace(process.myself("w"), host=f"not-{socket.gethostname()}")
    with engine.connect() as pool, engine.connect() as other:
        session.open_(other, elsewhere)
        other.commit()
        assert relevo("healthy", "worker").code == 1
        session.open_(pool, process.myself("w"))
        pool.commit()
        answer = relevo("healthy", "worker")
        assert (answer.code, answer.out) == (0, "A worker of this machine is at work.\n")
        pool.invalidate()
        other.invalidate()  # a lock of a session lasts as long as its connection, whose end Postgres hears of some time later
    wait_until(lambda: relevo("healthy", "worker").code == 1, 30, "nobody holds a session any more")


def test_another_word_is_refused(relevo: Relevo) -> None:
    answer = relevo("healthy", "database")
    assert answer.code == 2
    assert "feeder" in answer.err
