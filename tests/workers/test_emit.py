"""`from workers import emit`: in the caller's own transaction, whatever SQLAlchemy object holds it, with values that keep their types."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from ordering import db, facts
from ordering.errors import FactKeyConflict, Invalid
from tests import servers
from workers import emit
from workers.values import from_json, to_json

ROOT = Path(__file__).resolve().parents[2]
TYPED = {
    "at": datetime(2030, 1, 31, 9, 30, tzinfo=UTC), "day": date(2030, 1, 31), "time": time(9, 30), "id": UUID(int=7),
    "amount": Decimal("1.10"), "text": b"abc", "bytes": b"\xff\x00", "deep": [{"amount": Decimal(2)}],
}  # fmt: skip


@pytest.fixture(scope="module")
def database(server_url: str, template: str) -> Iterator[Engine]:
    """A database with a table of the caller's own beside the platform's."""
    with servers.database(server_url, template) as url:
        made = db.engine(url)
        with made.begin() as tx:
            tx.execute(text("create table public.invoice (id integer primary key)"))
        yield made
        made.dispose()


@pytest.fixture
def mine(database: Engine) -> Engine:
    """That database, with neither an invoice nor a fact in it."""
    with database.begin() as tx:
        tx.execute(text("delete from public.invoice"))
        tx.execute(text("delete from relevo.fact"))
    return database


def stored(engine: Engine) -> tuple[int, int]:
    """How many invoices and how many facts there are."""
    with engine.begin() as tx:
        row = tx.execute(text("select (select count(*) from public.invoice), (select count(*) from relevo.fact)")).one()
    return row[0], row[1]


INVOICE = text("insert into public.invoice values (1)")


def test_with_a_session_both_are_stored_or_none(mine: Engine) -> None:
    with Session(mine) as session:
        session.execute(INVOICE)
        emit(session, "invoice.issued", {"id": 1})
        session.rollback()
    assert stored(mine) == (0, 0)
    with Session(mine) as session, session.begin():
        session.execute(INVOICE)
        emit(session, "invoice.issued", {"id": 1})
        assert stored(mine) == (0, 0), "it does not commit"
    assert stored(mine) == (1, 1)


def test_with_a_connection_and_with_a_scoped_session(mine: Engine) -> None:
    with mine.begin() as tx:
        emit(tx, "invoice.issued", {"id": 1})
    scoped = scoped_session(sessionmaker(mine))
    emit(scoped, "invoice.issued", {"id": 2}, key="two")
    scoped.commit()
    scoped.remove()
    assert stored(mine) == (0, 2)


def test_in_a_savepoint_that_is_undone_nothing_is_left(mine: Engine) -> None:
    with Session(mine) as session, session.begin():
        session.execute(INVOICE)
        with session.begin_nested() as savepoint:
            emit(session, "invoice.issued", {"id": 1}, key="k")
            savepoint.rollback()
    assert stored(mine) == (1, 0)


def test_a_session_for_asyncio_runs_it_synchronously(mine: Engine) -> None:
    class AsyncSession:  # what of it counts: it calls the function with the synchronous session
        def __init__(self, session: Session) -> None:
            self.run_sync = lambda call, *args, **kwargs: call(session, *args, **kwargs)

    with Session(mine) as session, session.begin():
        asynchronous: Any = AsyncSession(session)
        asynchronous.run_sync(emit, "invoice.issued", {"id": 1}, key="k")
        with pytest.raises(Invalid, match=r"^session: is an asynchronous one; write `await session.run_sync\(emit, type, data\)`"):
            emit(asynchronous, "invoice.issued", {})

        class AsyncScopedSession:  # has no run_sync
            async def connection(self) -> None: ...

        scoped: Any = AsyncScopedSession()
        with pytest.raises(Invalid, match=r"^session: is an asynchronous one"):
            emit(scoped, "invoice.issued", {})
    assert stored(mine) == (0, 1)


@pytest.mark.parametrize("other", [None, 7, "postgresql://", object()])
def test_what_holds_no_transaction_is_refused(other: Any) -> None:
    with pytest.raises(Invalid, match=r"^session: is no SQLAlchemy Session or Connection"):
        emit(other, "invoice.issued", {})


def test_an_engine_is_refused(mine: Engine) -> None:
    with pytest.raises(Invalid, match=r"^session: is no SQLAlchemy"):
        emit(mine, "invoice.issued", {})  # type: ignore[arg-type]


def test_values_keep_their_types(mine: Engine) -> None:
    with mine.begin() as tx:
        made = emit(tx, "invoice.issued", TYPED)
        assert from_json(facts.fact(tx, made).data) == TYPED
        assert from_json(to_json("data", TYPED)) == TYPED
        assert facts.fact(tx, emit(tx, "invoice.issued")).data == {}


@pytest.mark.parametrize(
    "value",
    [
        {"__type__": "datetime", "__value__": "yesterday"}, {"__type__": "uuid", "__value__": {"fields": 1}},
        {"__type__": "no such", "__value__": 1}, {"__type__": [], "__value__": {}},
        {"__type__": "decimal", "__value__": None}, [{"a": {"__type__": "bytes", "__value__": 7}}], {"__type__": "datetime"},
    ],
)  # fmt: skip
def test_what_only_looks_like_a_typed_value_stays_what_it_is(value: Any) -> None:
    assert from_json(value) == value


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda tx: emit(tx, "invoice.issued", {"a": object()}), "data: cannot be stored as JSON: Object of type object is not JSON"),
        (lambda tx: emit(tx, "invoice.issued", {(1, 2): 3}), "data: cannot be stored as JSON"),
        (lambda tx: emit(tx, "invoice.issued", {"a": float("inf")}), "data: cannot be stored as JSON: Out of range float"),
        (lambda tx: emit(tx, "invoice.issued", {"a": "\0"}), "data: holds a NUL character"),
        (lambda tx: emit(tx, "invoice.issued", {"a": "\ud83d"}), "data: holds a NUL character or half a surrogate pair"),
        (lambda tx: emit(tx, "invoice.issued", {"a": b"x" * 10_000_000}), "data: is larger than 1000000 bytes"),
        (lambda tx: emit(tx, "invoice issued", {}), "type: 'invoice issued' is not the name of a fact"),
        (lambda tx: emit(tx, "invoice.issued", {}, key=""), "key: is empty"),
    ],
)
def test_a_wrong_call_is_one_sentence_and_leaves_the_transaction_usable(mine: Engine, call: Any, sentence: str) -> None:
    with mine.begin() as tx:
        with pytest.raises(Invalid) as refused:
            call(tx)
        assert str(refused.value).startswith(sentence)
        tx.execute(INVOICE)
    assert stored(mine) == (1, 0)


def test_a_key_used_for_other_data_is_refused(mine: Engine) -> None:
    with Session(mine) as session, session.begin():
        first = emit(session, "invoice.issued", {"amount": Decimal("1.10")}, key="k")
        assert emit(session, "invoice.issued", {"amount": Decimal("1.10")}, key="k") == first
    with Session(mine) as session, pytest.raises(FactKeyConflict), session.begin():
        emit(session, "invoice.issued", {"amount": Decimal("1.11")}, key="k")
    assert stored(mine) == (0, 1)


def test_a_web_process_that_emits_loads_no_celery() -> None:
    seen = "import sys, json; from workers import emit; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", seen], cwd=ROOT, capture_output=True, timeout=60, check=True)
    loaded = set(json.loads(done.stdout))
    assert {"workers.facts", "kombu.utils.json"} <= loaded
    assert not {"celery", "pydantic", "psutil", "httpx", "structlog", "redis", "kombu.messaging"} & loaded
