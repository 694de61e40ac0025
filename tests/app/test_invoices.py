"""The shop of examples/invoices: stores and emits in one transaction; the other side knows a key again; the checks see what is wrong."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from sqlalchemy import Engine, text

from examples.invoices import checks, receiver, tables, thumbnail, web
from examples.invoices.load import Member, Sent
from ordering import db, subscriptions
from ordering.subscriptions import Subscription
from tests import servers
from workers import volatile_shutdown

ADA = {"name": "Ada", "notify_url": "http://127.0.0.1:1/", "card": "4242"}
BILL = {"customer_id": 1, "number": "F-1", "total": "12.50"}


@contextmanager
def serving(app: FastAPI) -> Iterator[httpx.Client]:
    """A client of the application behind a uvicorn of its own, for the block."""
    listening = servers.listening()
    server = uvicorn.Server(uvicorn.Config(app, ws="none", log_config=None))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}", timeout=20, trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()
    assert not thread.is_alive()


@pytest.fixture
def shop(engine: Engine, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """The shop on a database of the test's own, with one customer and one task that hears of invoices."""
    monkeypatch.setenv("RELEVO_DATABASE_URL", database_url)
    tables.engine.cache_clear()
    heard = [Subscription("invoice.issued", "invoices.draw", "thumbnails")]
    db.transact(engine, lambda tx: subscriptions.subscribe_all(tx, heard, actor="test"))
    with serving(web.app) as client:
        assert client.post("/customers", json=ADA).json() == {"id": 1}
        yield client
    tables.engine().dispose()
    tables.engine.cache_clear()


@pytest.fixture
def other_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """The receiver, with a file of its own."""
    monkeypatch.setattr(receiver, "FILE", tmp_path / "receiver.sqlite")
    with serving(receiver.app) as client:
        yield client


def one(engine: Engine, query: str) -> object:
    with engine.connect() as tx:
        return tx.execute(text(query)).scalar_one()


def test_an_invoice_and_its_fact_are_stored_together_and_once(shop: httpx.Client, engine: Engine) -> None:
    first = shop.post("/invoices", json=BILL)
    again = shop.post("/invoices", json=BILL)
    assert (first.status_code, again.status_code, again.json()) == (201, 201, first.json())
    assert one(engine, "select count(*) from shop.invoice") == 1
    assert one(engine, "select count(*) from relevo.fact where type = 'invoice.issued'") == 1
    assert one(engine, "select count(*) from relevo.item where task = 'invoices.draw'") == 1
    assert volatile_shutdown() == 0
    assert first.json()["id"] in shop.get("/recently").json()
    assert 'relevo_volatile_total{outcome="done"}' in shop.get("/metrics").text


def test_a_draft_emits_nothing(shop: httpx.Client, engine: Engine) -> None:
    assert shop.post("/drafts", json=BILL).status_code == 201
    assert one(engine, "select count(*) from relevo.fact where type = 'invoice.issued'") == 0


def test_where_the_fact_cannot_be_stored_no_invoice_is(shop: httpx.Client, engine: Engine) -> None:
    with engine.begin() as tx:
        # Somebody took the key that the next invoice's fact will have.
        tx.execute(text("select relevo.emit('invoice.issued', '{\"id\": 0}', 'invoice-' || id) from generate_series(1, 5) id"))
    assert shop.post("/invoices", json=BILL).status_code == 500
    assert one(engine, "select count(*) from shop.invoice") == 0


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"customer_id": 99}, 404), ({"total": "12.51"}, 409), ({"total": "0"}, 422), ({"total": "NaN"}, 422), ({"number": "a\x00b"}, 422),
        ({"number": ""}, 422), ({"customer_id": 10**30}, 422), ({"number": "\ud800"}, 422),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(shop: httpx.Client, changed: dict[str, object], status: int) -> None:
    assert shop.post("/invoices", json=BILL).status_code == 201
    # Written here: httpx would not write half a character.
    written = json.dumps(BILL | changed)
    assert shop.post("/invoices", content=written, headers={"Content-Type": "application/json"}).status_code == status


def test_the_other_side_knows_a_key_again_and_fails_at_most_twice(other_side: httpx.Client) -> None:
    order = {"account": "A-1", "card": "4242", "amount": "19.00"}
    failed = 0
    for number in range(40):
        answers = [other_side.post("/charges", json=order, headers={"Idempotency-Key": f"key-{number}"}) for _ in range(4)]
        good = [each for each in answers if each.status_code == 200]
        failed += len(answers) - len(good)
        assert len(good) >= 2
        assert len({each.json()["charge"] for each in good}) == 1
    assert failed > 2, "it fails now and then"
    with closing(sqlite3.connect(receiver.FILE)) as file:
        assert file.execute("select count(*), count(distinct key) from charge").fetchone() == (40, 40)


def test_a_declined_card_is_not_charged(other_side: httpx.Client) -> None:
    order = {"account": "A-1", "card": receiver.DECLINED, "amount": "19.00"}
    statuses = {other_side.post("/charges", json=order, headers={"Idempotency-Key": "k"}).status_code for _ in range(4)}
    assert 402 in statuses
    assert 200 not in statuses
    with closing(sqlite3.connect(receiver.FILE)) as file:
        assert file.execute("select count(*) from charge").fetchone() == (0,)


def test_the_checks_see_what_is_missing_and_what_is_there_twice(shop: httpx.Client, engine: Engine, other_side: httpx.Client) -> None:
    member = Member(1, "Ada", refuses=False, declined=False)
    number = shop.post("/invoices", json=BILL).json()["id"]
    sent = Sent(members=[member], invoices={number: (member, "F-1")})

    def wrong() -> set[str]:
        return {each.what for each in checks.all_of(engine, receiver.FILE, sent) if not each.right}

    def notify(key: str) -> None:
        for _ in range(3):  # it fails at most twice
            other_side.post("/notices", json={"invoice": "F-1", "total": "12.50"}, headers={"Idempotency-Key": key})

    effects = {
        "thumbnails that can be read", "notices accepted, one key per invoice", "summaries that equal a recount",
        "customers charged at the provider", "charges noted here",
    }  # fmt: skip
    with receiver.opened():
        pass
    assert wrong() == effects, "nothing has been done yet"
    notify("first")
    for _ in range(3):
        other_side.post("/charges", json={"account": "A-1", "card": "4242", "amount": "1"}, headers={"Idempotency-Key": "charge"})
    with engine.begin() as tx:
        tx.execute(text("insert into shop.thumbnail values (:id, :png)"), {"id": number, "png": thumbnail.draw("F-1", "Ada", Decimal(1))})
        tx.execute(text("insert into shop.summary values (1, 1, 12.50)"))
        tx.execute(text("insert into shop.account values (1, 'A-1', 1)"))
    assert wrong() == set()
    notify("second")
    with engine.begin() as tx:
        tx.execute(text("update shop.thumbnail set png = 'no picture'"))
        tx.execute(text("update shop.summary set total = 12.51"))
        tx.execute(text("update relevo.item set state = 'failed', unresolved_at = now() where task = 'invoices.draw'"))
    sent.unanswered.append("/invoices F-9")
    assert wrong() == {
        "requests that were never answered", "thumbnails that can be read", "notices accepted, one key per invoice",
        "summaries that equal a recount", "dead letters, exactly those",
    }  # fmt: skip
