"""What must be true once all is quiet: everything stored once, each effect once, and given up exactly what had to be."""

from __future__ import annotations

import io
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image, UnidentifiedImageError
from sqlalchemy import Connection, Engine, text

from examples.invoices import thumbnail
from examples.invoices.load import Sent


@dataclass(frozen=True)
class Check:
    """One line of the table: right if what was found is what was expected. `wrong` names some of what is not."""

    what: str
    expected: int
    found: int
    wrong: str = ""

    @property
    def right(self) -> bool:
        """Whether it is as it has to be."""
        return self.expected == self.found and not self.wrong


UNSETTLED = text("""
    select count(*) from relevo.item i join relevo.plan p on p.id = i.plan_id
    where i.state in ('waiting', 'postponed', 'dispatched') and p.concurrency > 1
""")


def unsettled(tx: Connection) -> int:
    """Items of streams that still wait, sleep or run."""
    return int(tx.execute(UNSETTLED).scalar_one())


INVOICES = text("select id, number, issued from shop.invoice")
FACTS = text("select (data ->> 'id')::bigint from relevo.fact where type = 'invoice.issued'")
THUMBNAILS = text("select invoice_id, png from shop.thumbnail")
SUMMARIES = text("""
    select coalesce(s.customer_id, i.customer_id) as id from shop.summary s full join (
        select customer_id, count(*) as invoices, sum(total) as total from shop.invoice where issued group by customer_id
    ) i on i.customer_id = s.customer_id where (s.invoices, s.total) is distinct from (i.invoices, i.total)
""")
SUMMARISED = text("select count(*) from shop.summary")
PAID = text("select customer_id, charge from shop.account where charge is not null")
ACCOUNTS = text("select number, customer_id from shop.account")
DEAD = text("""
    select i.task || ' ' || (i.args -> 0 ->> 'id') as letter, i.state, i.error from relevo.item i
    where i.state in ('failed', 'interrupted')
""")


def all_of(engine: Engine, receiver: Path, sent: Sent) -> list[Check]:
    """Every check, in the order of what happens to an invoice and to a customer."""
    with engine.connect() as tx:
        rows = tx.execute(INVOICES).all()
        stored = {row.id for row in rows if row.issued}
        numbers = {row.id: row.number for row in rows}
        promised = set(sent.invoices)
        heard = {number for number, (member, _) in sent.invoices.items() if not member.refuses}
        found = [
            Check("requests that were never answered", 0, len(sent.unanswered), _some(sent.unanswered)),
            _once("invoices stored", promised, [row.id for row in rows if row.issued]),
            _once("drafts stored", sent.drafts, [row.id for row in rows if not row.issued]),
            _once("facts, one per invoice", stored, tx.execute(FACTS).scalars().all()),
            _thumbnails(stored, tx),
            _notices(receiver, {numbers[each] for each in heard if each in numbers}),
            _summaries(tx, {member.id for member, _ in sent.invoices.values()}),
        ]
        return found + _charges(tx, receiver, sent) + [_dead(tx, sent)]


def _once(what: str, expected: Iterable[Any], found: Iterable[Any]) -> Check:
    """Each of `expected` once and nothing else."""
    wanted, counted = set(expected), Counter(found)
    wrong = [f"missing: {each}" for each in wanted - set(counted)]
    wrong += [f"unexpected: {each}" for each in set(counted) - wanted]
    wrong += [f"{count} times: {each}" for each, count in counted.items() if count > 1]
    return Check(what, len(wanted), sum(counted.values()), _some(wrong))


def _some(wrong: list[str]) -> str:
    return ", ".join(wrong[:3]) + (f" and {len(wrong) - 3} more" if len(wrong) > 3 else "")


def _thumbnails(stored: set[int], tx: Connection) -> Check:
    drawn = []
    for row in tx.execute(THUMBNAILS):
        try:
            with Image.open(io.BytesIO(row.png)) as picture:
                picture.load()
                if picture.size == thumbnail.SIZE and picture.format == "PNG":
                    drawn.append(row.invoice_id)
        except UnidentifiedImageError:
            continue  # then it is missing
    return _once("thumbnails that can be read", stored, drawn)


def _notices(receiver: Path, expected: set[str]) -> Check:
    with closing(sqlite3.connect(receiver)) as other:
        found = [row[0] for row in other.execute("select invoice from notice")]
    return _once("notices accepted, one key per invoice", expected, found)


def _summaries(tx: Connection, customers: set[int]) -> Check:
    wrong = [f"customer {each}" for each in tx.execute(SUMMARIES).scalars()]
    return Check("summaries that equal a recount", len(customers), tx.execute(SUMMARISED).scalar_one() - len(wrong), _some(wrong))


def _charges(tx: Connection, receiver: Path, sent: Sent) -> list[Check]:
    owner: dict[str, int] = {row.number: row.customer_id for row in tx.execute(ACCOUNTS)}
    with closing(sqlite3.connect(receiver)) as other:
        charges = {row[0]: owner.get(row[1], row[1]) for row in other.execute("select number, account from charge")}
    paying = {member.id for member in sent.members if not member.declined}
    noted = [row.customer_id for row in tx.execute(PAID) if charges.get(row.charge) == row.customer_id]
    return [_once("customers charged at the provider", paying, charges.values()), _once("charges noted here", paying, noted)]


def _dead(tx: Connection, sent: Sent) -> Check:
    expected = {f"invoices.notify {number}" for number, (member, _) in sent.invoices.items() if member.refuses}
    expected |= {f"invoices.onboard {member.id}" for member in sent.members if member.declined}
    return _once("dead letters, exactly those", expected, tx.execute(DEAD).scalars().all())


CUT = text("select count(*) from relevo.event where action = 'interrupt'")
SENT_AGAIN = text("select coalesce(sum(sends - 1) filter (where sends > 1), 0), coalesce(sum(copies_dropped), 0) from relevo.dispatch")


def weather(engine: Engine, receiver: Path) -> list[str]:
    """What the faults have led to, which the checks are right in spite of."""
    with engine.connect() as tx:
        cut = tx.execute(CUT).scalar_one()
        again, dropped = tx.execute(SENT_AGAIN).one()
    with closing(sqlite3.connect(receiver)) as other:
        repeated = other.execute("select coalesce(sum(accepted - 1), 0) from notice").fetchone()[0]
        asked, keys = other.execute("select coalesce(sum(times), 0), count(*) from asked").fetchone()
    return [
        f"{cut} items were cut off in the midst of their bodies",
        f"{again} messages were sent again, {dropped} second copies found nothing to do",
        f"the other side was asked {asked} times about {keys} effects, and recognised {repeated} notices that it had",
    ]
