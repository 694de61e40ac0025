"""What happens when an invoice was issued or a customer has joined. Every body may run twice; its effect happens once."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import httpx
from celery.exceptions import Reject
from sqlalchemy import func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from examples.invoices import tables, thumbnail
from examples.invoices.tables import Account, Customer, Invoice, Summary, Thumbnail
from workers import celery
from workers.batch import Message

PAYMENTS_URL = os.environ.get("INVOICES_PAYMENTS_URL", "http://127.0.0.1:8200")
TRIAL_SECONDS = float(os.environ.get("INVOICES_TRIAL_SECONDS", 14 * 24 * 3600))
PRICE = "19.00"
ANSWER_WITHIN = 5.0  # seconds


@celery.task(name="invoices.draw", on="invoice.issued", plan="thumbnails")
def draw(fact: dict[str, Any]) -> int:
    """Draw the thumbnail. Once: its primary key is the invoice's."""
    with Session(tables.engine()) as session, session.begin():
        invoice = session.get_one(Invoice, fact["id"])
        customer = session.get_one(Customer, invoice.customer_id)
        number, name, total = invoice.number, customer.name, invoice.total
    png = thumbnail.draw(number, name, total)  # with no transaction open
    with Session(tables.engine()) as session, session.begin():
        session.execute(insert(Thumbnail).values(invoice_id=fact["id"], png=png).on_conflict_do_nothing())
    return len(png)


@celery.task(
    bind=True, name="invoices.notify", on="invoice.issued", plan="notifications",
    autoretry_for=(httpx.HTTPError,), retry_backoff=1, retry_backoff_max=2, max_retries=5,
)  # fmt: skip
def notify(self: Any, fact: dict[str, Any]) -> None:
    """Tell the customer's accountant. Once: the key is the same for every attempt, and the receiver knows it again."""
    with Session(tables.engine()) as session, session.begin():
        invoice = session.get_one(Invoice, fact["id"])
        told = {"invoice": invoice.number, "total": str(invoice.total)}
        url = session.get_one(Customer, invoice.customer_id).notify_url
    post(url, told, self.idempotency_key("notify"))


@celery.task(name="invoices.summarise", on="invoice.issued", plan="summaries", batch=True, batch_size=50)
def summarise(messages: list[Message]) -> None:
    """Recount the totals of the customers in the batch. Once or twice makes no difference: what is written is a count, not a change."""
    recount({message.args[0]["customer_id"] for message in messages})  # returns without a raise: all of them are acknowledged


@celery.task(name="invoices.recount_all", plan="upkeep")
def recount_all() -> int:
    """Recount everybody's total; the catalogue schedules it for the night."""
    with Session(tables.engine()) as session, session.begin():
        everybody = set(session.scalars(select(Customer.id)))
    recount(everybody)
    return len(everybody)


@celery.task(bind=True, name="invoices.onboard", on="customer.joined", plan="onboarding")
def onboard(self: Any, fact: dict[str, Any]) -> str:
    """Account, trial, first charge, in this order, each once, over days and restarts."""
    number = self.step("create account", create_account, fact["id"])
    self.sleep("trial", seconds=TRIAL_SECONDS)
    key = self.idempotency_key("first charge")
    charge = self.step("first charge", first_charge, number, fact["card"], key, retries=20, delay=0.5, backoff=1.5)
    if charge is None:
        raise Reject(f"the card of account {number} was declined")  # a person's business: no retry helps
    self.step("open account", open_account, fact["id"], charge)
    return f"{number} is open"


def create_account(customer_id: int) -> str:
    """The number of the customer's account, made if there is none."""
    with Session(tables.engine()) as session, session.begin():
        session.execute(insert(Account).values(customer_id=customer_id, number=f"A-{customer_id:06}").on_conflict_do_nothing())
        return session.scalars(select(Account.number).where(Account.customer_id == customer_id)).one()


def first_charge(account: str, card: str, key: str) -> int | None:
    """The payment's number at the provider; None if the card was declined."""
    answer = post(f"{PAYMENTS_URL}/charges", {"account": account, "card": card, "amount": PRICE}, key, fine=(402,))
    return None if answer.status_code == 402 else int(answer.json()["charge"])


def open_account(customer_id: int, charge: int) -> None:
    """Note the payment."""
    with Session(tables.engine()) as session, session.begin():
        session.execute(update(Account).where(Account.customer_id == customer_id).values(charge=charge))


def recount(customers: set[int]) -> None:
    """Write down how many invoices each of the customers was sent, and of how much in all."""
    with Session(tables.engine()) as session, session.begin():
        # One recount of a customer at a time, in one order, and each sees what the last one saw: else an older count could come last.
        # Locked in a statement of its own, so that the count's snapshot is taken afterwards.
        session.execute(text("select from shop.customer where id = any(:ids) order by id for no key update"), {"ids": sorted(customers)})
        counted = (
            select(Invoice.customer_id, func.count(), func.sum(Invoice.total))
            .where(Invoice.customer_id.in_(customers), Invoice.issued)
            .group_by(Invoice.customer_id)
        )
        write = insert(Summary).from_select(["customer_id", "invoices", "total"], counted)
        session.execute(
            write.on_conflict_do_update(
                index_elements=["customer_id"], set_={"invoices": write.excluded.invoices, "total": write.excluded.total}
            )
        )


def post(url: str, content: dict[str, str], key: str, fine: tuple[int, ...] = ()) -> httpx.Response:
    """One request with an Idempotency-Key; an answer of 2xx, or of a status that is `fine`. Raises httpx.HTTPError for any other."""
    answer = _client().post(url, json=content, headers={"Idempotency-Key": key})
    return answer if answer.status_code in fine else answer.raise_for_status()


@cache
def _client() -> httpx.Client:
    # One for each pool process, made in its first body: a client reads the certificates of all authorities, which takes 20 ms.
    return httpx.Client(timeout=ANSWER_WITHIN)
