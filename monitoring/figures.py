"""What a scrape reads from Postgres: one snapshot, one query for each kind of figure, no lock that anything waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text

from ordering import db, tally, views
from ordering import signals as reading
from ordering.model import DEFAULT_QUEUE
from ordering.signals import Signals
from ordering.tally import Total

# The scrape's own bounds, within the few seconds that it has.
SESSION = {"statement_timeout": "2500", "lock_timeout": "1000"}


@dataclass(frozen=True)
class Figures:
    """One snapshot. `feeding`: a feeder took a sample lately. `queues`: where messages may be."""

    signals: Sequence[Signals]
    totals: Sequence[Total]
    workers: int
    feeding: bool
    queues: Sequence[str]


QUEUES = text("select distinct queue from relevo.task")
# Each feeder takes one sample a minute of every plan; of a plan that is new there may be none yet.
FEEDING = text("""
    select exists (select from relevo.sample where minute > now() - interval '150 seconds')
        or not exists (select from relevo.plan where created_at < now() - interval '150 seconds')
""")


def engine(url: str) -> Engine:
    """An engine for the exporter: bounded, and in one snapshot per transaction."""
    return db.engine(url, name="relevo exporter", settings=SESSION).execution_options(isolation_level="REPEATABLE READ")


def read(tx: Connection) -> Figures:
    """All that a scrape needs from Postgres."""
    return Figures(
        signals=reading.signals(tx),
        totals=tally.totals(tx),
        workers=views.live_sessions(tx),
        feeding=tx.execute(FEEDING).scalar_one(),
        queues=sorted({DEFAULT_QUEUE, *tx.execute(QUEUES).scalars()}),
    )
