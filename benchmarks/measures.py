"""The measures. Each takes a rig and gives rows of (what, figure, unit)."""

from __future__ import annotations

import os
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from itertools import pairwise

import psutil
from sqlalchemy import Engine, text

from benchmarks.celery_chain import send
from benchmarks.rig import Rig, wait_for
from ordering import add, items, move, plans
from ordering.model import After, Item, NewItem, OnInterrupt, State

Row = tuple[str, float, str]
ACTOR = "benchmark"


def _fill(engine: Engine, plan: str, lane: int, count: int, *, start: bool = True) -> None:
    with engine.begin() as tx:
        plans.create(tx, plan, actor=ACTOR)
        add.add_many(tx, plan, [NewItem("mark", args=[lane, number]) for number in range(count)], actor=ACTOR)
        if start:
            plans.start(tx, plan, actor=ACTOR)


def _gaps(marks: Iterable[tuple[int, int, float, float]], count: int) -> list[float]:
    ordered = sorted(marks, key=lambda record: record[2])
    assert [record[1] for record in ordered] == list(range(count)), "out of order"
    gaps = [(after[2] - before[3]) * 1000 for before, after in pairwise(ordered)]
    assert min(gaps) >= 0, "two bodies at once"
    return gaps


def _spread(name: str, gaps: list[float]) -> list[Row]:
    ranked = sorted(gaps)
    return [(f"{name}, p50", statistics.median(ranked), "ms"), (f"{name}, p99", ranked[int(len(ranked) * 0.99)], "ms")]


def hand_off(rig: Rig) -> list[Row]:
    """Item n ended, item n+1 started: ours, then Celery's chain, both no-ops, two slots."""
    count, rows = 500, list[Row]()
    with rig.database() as (url, engine):
        rig.start(url, "workers.feeder")
        rig.start(url, "workers.worker", "--slots", "2")
        _fill(engine, "warm", -1, 50)
        rig.await_marks(50, 60)
        rig.forget_marks()
        _fill(engine, "line", 0, count)
        ours = _gaps(rig.await_marks(count, 120), count)
        rows += _spread("hand-off, relevo", ours)
    rig.forget_marks()
    rig.launch_plain(
        [sys.executable, "-m", "celery", "-A", "benchmarks.celery_chain", "worker", "-c", "2", "-l", "WARNING", "-Q", "celery-chain"]
    )
    send(rig.broker, -1, 50)
    rig.await_marks(50, 60)
    rig.forget_marks()
    send(rig.broker, 0, count)
    theirs = _gaps(rig.await_marks(count, 120), count)
    rig.stop()
    rig.forget_marks()
    rows += _spread("hand-off, Celery chain()", theirs)
    rows.append(("hand-off, relevo : chain(), p50", statistics.median(ours) / statistics.median(theirs), "x"))
    return rows


def lanes(rig: Rig) -> list[Row]:
    """200 serial plans of 20 no-ops, two workers of four slots; order checked in each plan."""
    with rig.database() as (url, engine):
        for lane in range(200):
            _fill(engine, f"lane-{lane}", lane, 20, start=False)
        rig.start(url, "workers.feeder")
        for _ in range(2):
            rig.start(url, "workers.worker", "--slots", "4")
        with engine.begin() as tx:
            for lane in range(200):
                plans.start(tx, f"lane-{lane}", actor=ACTOR)
        marks = rig.await_marks(4000, 120)
    rig.forget_marks()
    for lane in range(200):
        _gaps([record for record in marks if record[0] == lane], 20)
    return [("200 plans x 20, relevo", 4000 / (max(m[3] for m in marks) - min(m[2] for m in marks)), "items/s")]


def bulk_add(rig: Rig) -> list[Row]:
    """100,000 items in one call, the objects made beforehand."""
    with rig.database() as (_, engine):
        new = [NewItem("mark", args=[0, number], title=f"item {number}") for number in range(100_000)]
        with engine.begin() as tx:
            plans.create(tx, "bulk", actor=ACTOR)
        start = time.monotonic()
        with engine.begin() as tx:
            add.add_many(tx, "bulk", new, actor=ACTOR)
        return [("bulk add", len(new) / (time.monotonic() - start), "items/s")]


WRITTEN = text("select n_tup_upd from pg_stat_user_tables where schemaname = 'relevo' and relname = 'item'")


def moves(rig: Rig) -> list[Row]:
    """Random moves in a plan with a million waiting items: time, and rows written per move."""
    with rig.database() as (_, engine):
        with engine.begin() as tx:
            plans.create(tx, "million", actor=ACTOR)
        for part in range(10):
            with engine.begin() as tx:
                add.add_many(tx, "million", (NewItem("mark", args=[part, n]) for n in range(100_000)), actor=ACTOR)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as raw:
            raw.execute(text("vacuum analyze relevo.item"))
        with engine.begin() as tx:
            ids = list(tx.execute(text("select id from relevo.item")).scalars())
            before = tx.execute(WRITTEN).scalar_one()
        chosen, times = random.Random(1), list[float]()
        for _ in range(500):
            item, neighbour = chosen.sample(ids, 2)
            start = time.monotonic()
            with engine.begin() as tx:
                move.move(tx, item, After(neighbour), actor=ACTOR)
            times.append((time.monotonic() - start) * 1000)
        with engine.begin() as tx:
            tx.execute(text("select pg_stat_force_next_flush()"))
        time.sleep(1.5)
        with engine.begin() as tx:
            written = tx.execute(WRITTEN).scalar_one() - before
        return [*_spread("move among a million", times), ("rows written per move", written / 500, "rows")]


def death_noticed(rig: Rig) -> list[Row]:
    """kill -9 of the pool process that runs an item: how long until it is shown as interrupted, and until it is requeued."""
    shown, requeued = list[float](), list[float]()
    again = (State.WAITING, State.DISPATCHED, State.RUNNING)
    with rig.database() as (url, engine):
        rig.start(url, "workers.feeder")
        rig.start(url, "workers.worker", "--slots", "2")
        for number in range(10):
            shown.append(_until(engine, f"hold-{number}", OnInterrupt.HOLD, lambda item: item.state is State.INTERRUPTED))
            requeued.append(_until(engine, f"again-{number}", OnInterrupt.REQUEUE, lambda item: item.attempts == 1 and item.state in again))
    return [
        (f"kill -9 {what}, {which}", pick(times), "ms")
        for what, times in (("shown", shown), ("requeued", requeued))
        for which, pick in (("median of 10", statistics.median), ("worst", max))
    ]


PID = text("""
    select s.pid from relevo.session s join relevo.dispatch d on d.session_id = s.id
    join relevo.item i on i.dispatch_id = d.id where i.id = :id and d.ended_at is null
""")


def _until(engine: Engine, plan: str, on_interrupt: OnInterrupt, seen: Callable[[Item], bool]) -> float:
    with engine.begin() as tx:
        plans.create(tx, plan, actor=ACTOR)
        item_id = add.add(tx, plan, NewItem("nap", args=[30.0], on_interrupt=on_interrupt), actor=ACTOR).id
        plans.start(tx, plan, actor=ACTOR)

    def item() -> Item:
        with engine.begin() as tx:
            return items.get(tx, item_id)

    wait_for(lambda: item().state is State.RUNNING, 30)
    with engine.begin() as tx:
        pid = tx.execute(PID, {"id": item_id}).scalar_one()
    os.kill(pid, signal.SIGKILL)
    start = time.monotonic()
    while not seen(item()):
        if time.monotonic() - start > 30:
            raise TimeoutError(plan)
        time.sleep(0.002)
    waited = (time.monotonic() - start) * 1000
    wait_for(lambda: item().state is not State.DISPATCHED, 30)
    with engine.begin() as tx:
        if item().state in (State.WAITING, State.RUNNING):
            items.cancel(tx, item_id, actor=ACTOR)
    return waited


def idle(rig: Rig) -> list[Row]:
    """What a platform with nothing to do takes: processor time of feeder, worker with four slots, Postgres and Valkey."""
    with rig.database() as (url, _):
        rig.start(url, "workers.feeder")
        rig.start(url, "workers.worker", "--slots", "4")
        time.sleep(3)
        seconds = 20.0
        family = psutil.Process().children(recursive=True)
        before = sum(_used(process) for process in family)
        time.sleep(seconds)
        after = sum(_used(process) for process in family)
    return [("idle platform, of one core", (after - before) / seconds * 100, "%")]


def _used(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


ALL: dict[str, Callable[[Rig], list[Row]]] = {
    "hand-off": hand_off, "lanes": lanes, "bulk": bulk_add, "move": moves, "death": death_noticed, "idle": idle,
}  # fmt: skip
