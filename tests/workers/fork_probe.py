"""A program for test_forks.py: opens connections as a worker's process does, forks, and says as JSON what both sides see.

Arguments: the database's URL, the broker's URL.
"""

import gc
import json
import os
import sys
from typing import Any

from celery import Celery
from sqlalchemy import text

from ordering import db
from ordering.model import DEFAULT_QUEUE
from workers import forks
from workers.publish import Publisher

LOCK = 4711


def in_child(engine: Any, held: Any, raw: Any, publisher: Publisher, report: int) -> None:
    """What a forked child finds, and the most harm that it can do: use, close, collect."""
    told = {"descriptor": os.readlink(f"/proc/self/fd/{raw.fileno()}"), "sizes": publisher.queue_sizes([DEFAULT_QUEUE])}
    try:
        raw.execute("select 1")
        told["used"] = "the parent's connection"
    except Exception as error:
        told["used"] = type(error).__name__
    held.invalidate()
    engine.dispose()
    raw.close()
    del held, engine, raw
    gc.collect()
    os.write(report, json.dumps(told).encode())


def main() -> None:
    engine = forks.guard(db.engine(sys.argv[1], pooled=False))
    publisher = Publisher(Celery("forks", broker=sys.argv[2]))
    publisher.queue_sizes([DEFAULT_QUEUE])
    held = engine.connect()
    raw: Any = held.connection.driver_connection
    held.execute(text("select pg_advisory_lock(:lock)"), {"lock": LOCK})
    held.commit()
    before = held.execute(text("select pg_backend_pid()")).scalar_one()
    held.commit()
    reading, report = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            in_child(engine, held, raw, publisher, report)
            sys.stdin.readline()  # it stays, as a child that a body left behind
        finally:
            os._exit(0)
    os.close(report)
    told = json.loads(os.read(reading, 65536))
    after = held.execute(text("select pg_backend_pid()")).scalar_one()
    told |= {"before": before, "after": after, "parent_sizes": publisher.queue_sizes([DEFAULT_QUEUE]), "child": child}
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()
    sys.stdin.readline()


if __name__ == "__main__":
    main()
