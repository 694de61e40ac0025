"""What goes wrong in the demo, on purpose."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

import psutil
import redis
from sqlalchemy import Engine, text

from examples.invoices.stage import Stage

# Of a pool process that runs something now, if there is one.
BUSY = text("""
    select s.pid, d.task from relevo.session s join relevo.dispatch d on d.session_id = s.id
    where d.ended_at is null and s.closed_at is null limit 1
""")
PATIENCE = 5.0  # seconds for a service that was killed to be there again, and for a body to be seen


def kill_pool_process(stage: Stage, engine: Engine) -> str:
    """kill -9 a process that runs a body; whichever there is, should none be seen to run one."""
    deadline = time.monotonic() + PATIENCE
    while True:
        idle = time.monotonic() > deadline
        children = {each.pid: each for each in _children(stage)}
        with engine.connect() as connection:
            found = connection.execute(BUSY).one_or_none()
        pid = found.pid if found is not None and found.pid in children else next(iter(children), None) if idle else None
        if pid is not None:
            with suppress(psutil.NoSuchProcess):  # ended by itself: another one, then
                children[pid].kill()
                return f"kill -9 of pool process {pid}, " + ("idle" if found is None or found.pid != pid else f"at {found.task}")
        if time.monotonic() > deadline + 4 * PATIENCE:
            raise TimeoutError("the worker has no pool process")
        time.sleep(0.01)


def kill_worker(stage: Stage, _: Engine) -> str:
    """kill -9 the whole worker; its pool processes end with it."""
    return _kill(stage, "worker")


def kill_feeder(stage: Stage, _: Engine) -> str:
    """kill -9 the feeder."""
    return _kill(stage, "feeder")


def flush_broker(stage: Stage, _: Engine) -> str:
    """Delete everything that the broker holds."""
    url = stage.record.broker_url
    assert url is not None
    with redis.Redis.from_url(url, socket_timeout=30) as broker:
        held = sum(broker.llen(key) for key in broker.keys("relevo*") if broker.type(key) == b"list")
        broker.flushall()
    return f"flush of the broker, with {held} messages"


ALL: list[Callable[[Stage, Engine], str]] = [
    kill_pool_process, flush_broker, kill_worker, kill_feeder, kill_pool_process, flush_broker,
]  # fmt: skip


def _kill(stage: Stage, name: str) -> str:
    process = _there(stage, name)
    process.kill()
    return f"kill -9 of the {name} {process.pid}"


def _children(stage: Stage) -> list[psutil.Process]:
    try:
        return list(_there(stage, "worker").children())
    except psutil.NoSuchProcess:
        return []


def _there(stage: Stage, name: str) -> psutil.Process:
    deadline = time.monotonic() + 4 * PATIENCE
    while True:
        found = stage.service(name)
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"the {name} is not running")
        time.sleep(0.05)
