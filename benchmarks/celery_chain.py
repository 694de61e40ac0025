"""The contestant for hand-off: Celery's own chain() on the same broker, acknowledged late, one message prefetched."""

import os

from celery import Celery, chain

from benchmarks.rig import mark

app = Celery("chain", broker=os.environ.get("BENCH_BROKER", "memory://"))
app.conf.update(
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    task_default_queue="celery-chain",
    broker_connection_retry_on_startup=True,
)


@app.task(name="chained")
def chained(lane: int, number: int) -> None:
    mark(lane, number)


def send(broker: str, lane: int, count: int) -> None:
    """Send one chain of `count` no-ops."""
    app.conf.broker_url = broker
    chain(*(chained.si(lane, number) for number in range(count))).apply_async()
