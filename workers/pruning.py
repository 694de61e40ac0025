"""Pruning in a thread of the feeder's: in small steps, resting as long as each took, so that feeding never waits for it."""

from __future__ import annotations

import logging
import threading
import time
from types import TracebackType

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from ordering import db, prune

logger = logging.getLogger(__name__)
EVERY = 60.0  # seconds between looks for what is old
LEAST_REST = 0.01


class Pruner:
    """Prunes for as long as the block lasts, over connections of `engine`."""

    def __init__(self, engine: Engine, every: float = EVERY) -> None:
        self._engine, self._every = engine, every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pruner", daemon=True)

    def __enter__(self) -> Pruner:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(timeout=5)  # a step takes a tenth of a second; one that hangs dies with the process

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                gone = self._look()
                if gone:
                    logger.info("Pruned %d rows older than their plans keep them.", gone)
            except DBAPIError as error:
                if not (db.is_disconnect(error) or db.is_locked(error)):
                    logger.exception("Pruning failed; it is tried again in a minute.")
            except Exception:
                logger.exception("Pruning failed; it is tried again in a minute.")
            self._stop.wait(self._every)

    def _look(self) -> int:
        """Sweep until nothing old is left or the end is asked for; how many rows went."""
        gone = 0
        for sweep in db.transact(self._engine, prune.due):
            rest: prune.Sweep | None = sweep
            while rest is not None and not self._stop.is_set():
                begun = time.monotonic()
                step = db.transact(self._engine, lambda tx, rest=rest: prune.step(tx, rest))  # type: ignore[misc]
                gone, rest = gone + step.gone, step.rest
                self._stop.wait(max(LEAST_REST, time.monotonic() - begun))
        return gone
