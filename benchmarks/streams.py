"""The measures of streams and steps. Each takes a rig and gives rows of (what, figure, unit)."""

from __future__ import annotations

import sys

from sqlalchemy import Engine, text

from benchmarks.celery_message import send
from benchmarks.rig import Rig, wait_for
from ordering import add, plans
from ordering.model import NewItem

Row = tuple[str, float, str]
ACTOR = "benchmark"
ENDED = text("select count(*), extract(epoch from max(settled_at) - min(started_at)) from relevo.item where state = 'succeeded'")


def _ended(engine: Engine) -> tuple[int, float]:
    with engine.connect() as tx:
        row = tx.execute(ENDED).one()
    return row[0], float(row[1] or 0)


def stream(rig: Rig) -> list[Row]:
    """20,000 no-ops of one stream, from the first start to the last outcome on record; then Celery, a transaction a message."""
    count, theirs = 20_000, 2_000
    with rig.database() as (url, engine):
        rig.start(url, "workers.feeder")
        rig.start(url, "workers.worker", "--slots", "2")
        with engine.begin() as tx:
            plans.create(tx, "stream", actor=ACTOR, concurrency=4)
            plans.pause(tx, "stream", actor=ACTOR)
            add.add_many(tx, "stream", [NewItem("noop", args=[number]) for number in range(count)], actor=ACTOR)
        with engine.begin() as tx:
            plans.start(tx, "stream", actor=ACTOR)
        wait_for(lambda: _ended(engine)[0] == count, 180)
        ours = count / _ended(engine)[1]
    with rig.database() as (url, engine):
        with engine.begin() as tx:
            tx.execute(text("create table public.effect (number bigint primary key, at timestamptz not null default clock_timestamp())"))
        worker = [sys.executable, "-m", "celery", "-A", "benchmarks.celery_message", "worker", "-c", "2", "-l", "WARNING"]
        send(rig.broker, theirs)
        rig.launch_plain([*worker, "-Q", "celery-message"], BENCH_DATABASE=url)
        done = text("select count(*), extract(epoch from max(at) - min(at)) from public.effect")

        def effects() -> tuple[int, float]:
            with engine.connect() as tx:
                row = tx.execute(done).one()
            return row[0], float(row[1] or 0)

        wait_for(lambda: effects()[0] == theirs, 120)
        celery = theirs / effects()[1]
    return [
        ("stream of no-ops, relevo", ours, "items/s"),
        ("stream, Celery with a transaction a message", celery, "items/s"),
        ("stream, relevo : Celery", ours / celery, "x"),
    ]


def durable_steps(rig: Rig) -> list[Row]:
    """1,000 remembered no-op steps of one body."""
    count = 1_000
    with rig.database() as (url, engine):
        rig.start(url, "workers.feeder")
        rig.start(url, "workers.worker", "--slots", "1")
        with engine.begin() as tx:
            plans.create(tx, "steps", actor=ACTOR, autostart=True)
            item = add.add(tx, "steps", NewItem("many_steps", args=[count]), actor=ACTOR).id
        wait_for(lambda: _ended(engine)[0] == 1, 60)
        with engine.connect() as tx:
            seconds = tx.execute(text("select cast(result as float) from relevo.item where id = :id"), {"id": item}).scalar_one()
            kept = tx.execute(text("select count(*) from relevo.step where item_id = :id and done"), {"id": item}).scalar_one()
    assert kept == count, f"{kept} steps are on record"
    return [("durable steps, one process", count / seconds, "steps/s")]


ALL = {"stream": stream, "steps": durable_steps}
