"""What the shop stores: customers, invoices, and what its consumers make of them. A schema of its own beside the platform's."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import cache

from sqlalchemy import Engine, ForeignKey, MetaData, Numeric, UniqueConstraint, create_engine, func, make_url, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.schema import CreateSchema

from workers import database

SCHEMA = "shop"


class Base(DeclarativeBase):
    """The shop's tables."""

    metadata = MetaData(schema=SCHEMA)


class Customer(Base):
    """Who buys. `notify_url`: where the accountant of the customer wants to hear of invoices. `card`: what pays after the trial."""

    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    notify_url: Mapped[str]
    card: Mapped[str]


class Invoice(Base):
    """What the answer of POST /invoices promises to be here. `number` is the customer's own, so asking twice stores once."""

    __tablename__ = "invoice"
    __table_args__ = (UniqueConstraint("customer_id", "number"),)
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey(Customer.id))
    number: Mapped[str]
    total: Mapped[Decimal] = mapped_column(Numeric(12, 2))
    issued: Mapped[bool]  # a draft is stored and nothing follows from it
    at: Mapped[datetime] = mapped_column(server_default=func.now())


class Thumbnail(Base):
    """A small picture of an invoice."""

    __tablename__ = "thumbnail"
    invoice_id: Mapped[int] = mapped_column(ForeignKey(Invoice.id), primary_key=True, autoincrement=False)
    png: Mapped[bytes]


class Summary(Base):
    """How many invoices a customer was sent, and of how much in all."""

    __tablename__ = "summary"
    customer_id: Mapped[int] = mapped_column(ForeignKey(Customer.id), primary_key=True, autoincrement=False)
    invoices: Mapped[int]
    total: Mapped[Decimal] = mapped_column(Numeric(14, 2))


class Account(Base):
    """What onboarding makes of a customer. `charge`: the payment's number at the provider, once it has paid."""

    __tablename__ = "account"
    customer_id: Mapped[int] = mapped_column(ForeignKey(Customer.id), primary_key=True, autoincrement=False)
    number: Mapped[str] = mapped_column(unique=True)
    charge: Mapped[int | None]


@cache
def engine() -> Engine:
    """The shop's database: the one that holds the platform's tables too, or there would be no common transaction.

    First called in a web process or a body, so that no connection is older than the process that uses it.
    """
    return create_engine(make_url(database.url()).set(drivername="postgresql+psycopg"), pool_pre_ping=True, pool_size=20)


def create() -> None:
    """Make the schema and the tables where they are missing; any number of processes at once."""
    with engine().begin() as tx:
        tx.execute(text("select pg_advisory_xact_lock(hashtext('shop'))"))
        tx.execute(CreateSchema(SCHEMA, if_not_exists=True))
        Base.metadata.create_all(tx)
