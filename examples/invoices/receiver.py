"""The other side, a double of what is not the shop's: an accountant's webhook and a payment provider. It fails now and then.

uvicorn examples.invoices.receiver:app --port 8200

What it has accepted is in the SQLite file INVOICES_RECEIVER_FILE before it answers, so a kill loses nothing. How it fails follows from
the key: no two runs of the same keys differ, and nothing fails more than twice, but for what always refuses.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from zlib import crc32

from fastapi import FastAPI, Header, HTTPException

FILE = Path(os.environ.get("INVOICES_RECEIVER_FILE", "receiver.sqlite"))
FAULTS = int(os.environ.get("INVOICES_FAULTS", 25))  # of a hundred keys, those that meet a fault
DECLINED = "4000-declined"

TABLES = """
    create table if not exists asked (key text primary key, times integer not null);
    create table if not exists notice (key text primary key, invoice text not null, total text not null, accepted integer not null);
    create table if not exists charge (number integer primary key, key text unique not null, account text not null, amount text not null);
"""
NOTICE = """
    insert into notice values (:key, :invoice, :total, 1) on conflict (key) do update set accepted = accepted + 1
"""
CHARGE = "insert into charge (key, account, amount) values (:key, :account, :amount) on conflict do nothing"

app = FastAPI(title="The other side")
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=1)]


@contextmanager
def opened() -> Iterator[sqlite3.Connection]:
    """The file, in a transaction that is committed at the end of the block."""
    connection = sqlite3.connect(FILE, timeout=10, isolation_level=None)
    try:
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = normal")  # a killed process loses nothing; a power cut is not its subject
        connection.executescript(TABLES)
        connection.execute("begin immediate")
        yield connection
        connection.execute("commit")
    finally:
        connection.close()


@app.get("/ready")
def ready() -> dict[str, bool]:
    """Whether it answers."""
    return {"ready": True}


@app.post("/notices")
def notice(key: Key, told: dict[str, Any]) -> dict[str, str]:
    """Accept a notice, the same one again too: a key stands for one."""
    with _asked(key) as (connection, fault):
        if fault != "before":
            connection.execute(NOTICE, {"key": key, "invoice": told["invoice"], "total": told["total"]})
    _fail(fault)
    return {"accepted": key}


@app.post("/never")
def never(key: Key) -> None:
    """An accountant who always refuses."""
    with _asked(key):
        pass
    raise HTTPException(503, "This address accepts nothing.")


@app.post("/charges")
def charge(key: Key, wanted: dict[str, Any]) -> dict[str, int]:
    """Charge once for each key; the same key again gets the first answer."""
    with _asked(key) as (connection, fault):
        declined = wanted["card"] == DECLINED
        if fault != "before" and not declined:
            connection.execute(CHARGE, {"key": key, "account": wanted["account"], "amount": wanted["amount"]})
        found = connection.execute("select number from charge where key = :key", {"key": key}).fetchone()
    _fail(fault)
    if declined:
        raise HTTPException(402, "The card was declined.")
    return {"charge": found[0]}


@contextmanager
def _asked(key: str) -> Iterator[tuple[sqlite3.Connection, str | None]]:
    """Count the question, and say what goes wrong with it: nothing, or a fault before or after the effect."""
    with opened() as connection:
        counted = "insert into asked values (:key, 1) on conflict (key) do update set times = times + 1 returning times"
        (times,) = connection.execute(counted, {"key": key}).fetchone()
        drawn = crc32(key.encode())
        unlucky = drawn % 100 < FAULTS and times <= 1 + drawn // 100 % 2
        yield connection, (("before", "after")[drawn // 200 % 2] if unlucky else None)


def _fail(fault: str | None) -> None:
    if fault == "before":
        raise HTTPException(503, "Not now.")
    if fault == "after":
        raise HTTPException(500, "It was done, and the answer got lost.")
