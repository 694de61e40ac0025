"""A module of a project that talks to Postgres and to the broker while it is imported, and keeps both connections open."""

import os
from typing import Any

from celery import Celery
from sqlalchemy import text

from ordering.model import DEFAULT_QUEUE
from tests import servers
from tests.cases.probe_tasks import body
from workers import celery, database
from workers.publish import Publisher

KEPT = database.engine().connect()
assert KEPT.execute(text("select 1")).scalar_one() == 1
PUBLISHER = Publisher(Celery("early", broker=os.environ["RELEVO_BROKER_URL"], set_as_current=False))
PUBLISHER.send("11111111-1111-4111-8111-111111111111", "probe.ask", servers.fresh_name("early"), "", "")

# Celery's own word for it; the platform has no other.
celery.conf.worker_max_tasks_per_child = int(os.environ.get("PROBE_RECYCLE", "0")) or None


@celery.task(bind=True, name="probe.ask")
def ask(self: Any, number: int) -> int:
    """Ask Postgres, over the project's own engine, and the broker something to which only one answer is right."""
    with body(self):
        with database.engine().connect() as connection:
            for offset in range(3):
                assert (
                    connection.execute(text("select cast(:number as integer)"), {"number": number + offset}).scalar_one() == number + offset
                )
        assert PUBLISHER.queue_sizes([DEFAULT_QUEUE])[DEFAULT_QUEUE] >= 0
    return number
