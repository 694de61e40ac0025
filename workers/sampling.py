"""Sampling in a thread of the feeder's: once a minute, so that feeding does not wait for a million items to be counted."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from ordering import db, samples

logger = logging.getLogger(__name__)
AGAIN = 5.0  # seconds until what failed is tried again
BEHIND = 0.2  # seconds after the minute has begun


class Sampler:
    """Takes each minute's sample for as long as the block lasts, over connections of `engine`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        wait = 0.0
        while not self._stop.wait(wait):
            wait = AGAIN
            try:
                db.transact(self._engine, samples.take)
                wait = db.transact(self._engine, samples.seconds_to_next) + BEHIND
            except DBAPIError as error:
                if not (db.is_disconnect(error) or db.is_locked(error)):
                    logger.exception("No sample could be taken; it is tried again in %g s.", AGAIN)
            except Exception:
                logger.exception("No sample could be taken; it is tried again in %g s.", AGAIN)
