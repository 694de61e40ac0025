"""Whether the database and the broker answer: one bounded look at each, one sentence where they do not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from celery import Celery
from sqlalchemy.exc import DBAPIError

from ordering import db, schema, views
from ordering.errors import RelevoError, UnknownSchema
from ordering.model import DEFAULT_QUEUE
from workers.publish import BrokerUnavailable, Publisher


def database(url: str) -> str | None:
    """What is wrong with the database at `url`, or None: it answers and is prepared. Takes at most about 3 s."""
    engine = db.engine(url, name="relevo probe", pooled=False)
    try:
        with db.reachable(), engine.connect() as connection:
            schema.check(connection)
    except UnknownSchema:  # while a newer release comes in, servers of the old one go on
        return None
    except RelevoError as error:
        return str(error)
    except DBAPIError as error:
        return f"Postgres refuses: {db.said(error)}"
    finally:
        engine.dispose()
    return None


def workers(url: str) -> str | None:
    """What is wrong with the workers of the database at `url`, or None. Takes at most about 3 s."""
    engine = db.engine(url, name="relevo probe", pooled=False)
    try:
        with db.reachable(), engine.connect() as connection:
            return None if views.live_sessions(connection) else "No pool process is alive: nothing that is added runs."
    except (RelevoError, DBAPIError):
        return "Who works cannot be told without Postgres."
    finally:
        engine.dispose()


def broker(url: str) -> str | None:
    """What is wrong with the broker at `url`, or None. Takes at most about 3 s."""
    publisher = Publisher(Celery(broker=url, set_as_current=False))
    try:
        publisher.queue_sizes([DEFAULT_QUEUE])
    except BrokerUnavailable as error:
        return str(error)
    finally:
        publisher.close()
    return None


def both(database_url: str, broker_url: str) -> list[str]:
    """What is wrong with either, looked at side by side."""
    with ThreadPoolExecutor(2) as pool:
        looks = [pool.submit(database, database_url), pool.submit(broker, broker_url)]
        return [problem for look in looks if (problem := look.result()) is not None]
