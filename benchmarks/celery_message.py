"""The contestant for streams: plain Celery whose tasks each write one row in a transaction of their own, acknowledged late."""

import os
from functools import cache

from celery import Celery
from sqlalchemy import Engine, text

from ordering import db

app = Celery("message", broker=os.environ.get("BENCH_BROKER", "memory://"))
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=16,
    task_ignore_result=True,
    task_default_queue="celery-message",
    broker_connection_retry_on_startup=True,
)


@cache
def _engine(pid: int) -> Engine:
    return db.engine(os.environ["BENCH_DATABASE"])


@app.task(name="one")
def one(number: int) -> None:
    with _engine(os.getpid()).begin() as tx:
        tx.execute(text("insert into public.effect (number) values (:number) on conflict do nothing"), {"number": number})


def send(broker: str, count: int) -> None:
    """Send `count` messages."""
    app.conf.broker_url = broker
    for number in range(count):
        one.apply_async((number,))
