"""The figures around every page, read beside the pages and once for all of some seconds: to count a million items takes 100 ms."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from ordering import db, samples, signals, workforce
from ordering.samples import Past
from ordering.signals import Signals
from ordering.workforce import Workforce

logger = logging.getLogger(__name__)
SECONDS = 5.0  # that the figures of one look are good for; as often as a stream of events tells of new ones
OLDEST = 30.0  # seconds; older ones are waited for a little
PATIENCE, FIRST = 0.15, 1.5  # seconds, which is more than small plans take; for the first page of a server
STOP = 2.0  # seconds
UNREAD = "The figures around the pages could not be read: %s"
SHOWN = 12  # plans whose past is read


@dataclass(frozen=True)
class Figures:
    """Of one look: every plan by name, those that are worth a look first, their last hour, and who works."""

    by_name: Mapping[str, Signals]
    first: Sequence[Signals]
    past: Mapping[str, Past]
    workforce: Workforce

    @property
    def dead_letters(self) -> int:
        """How many there are in all streams."""
        return sum(each.dead_letters for each in self.by_name.values() if each.concurrency > 1)


class Shared:
    """The latest figures of one server. A page takes what there is, and has them read anew beside it once they are old."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._found: tuple[float, Figures] | None = None
        self._reading: threading.Thread | None = None

    def of(self, *, acted: bool = False) -> Figures | None:
        """The figures, or None if there are none yet. `acted`: somebody has just changed something, and looks for it."""
        found = self._found
        age = float("inf") if found is None else time.monotonic() - found[0]
        if age > (0 if acted else SECONDS):
            self._refresh(FIRST if found is None else PATIENCE if acted or age > OLDEST else 0)
        return None if self._found is None else self._found[1]

    def stop(self) -> None:
        """Wait for whoever still reads."""
        with self._lock:
            reading = self._reading
        if reading is not None:
            reading.join(STOP)

    def _refresh(self, patience: float) -> None:
        with self._lock:
            if self._reading is None or not self._reading.is_alive():
                reading = threading.Thread(target=self._read, name="figures", daemon=True)
                try:
                    reading.start()
                except RuntimeError as error:  # no thread is to be had: the figures grow old
                    logger.warning(UNREAD, db.said(error))
                    return
                self._reading = reading
            reading = self._reading
        reading.join(patience)

    def _read(self) -> None:
        begun = time.monotonic()
        try:
            with self._engine.connect() as connection:
                self._found = (begun, db.transact(connection, _read))
        except SQLAlchemyError as error:  # whoever asks for a page hears of it; the figures grow old
            logger.warning(UNREAD, db.said(error))


def _read(tx: Connection) -> Figures:
    every = signals.signals(tx)
    first = sorted(every, key=_weight)[:SHOWN]
    past = samples.past(tx, [each.plan for each in first])
    return Figures({each.plan: each for each in every}, first, past, workforce.workforce(tx))


def _weight(each: Signals) -> tuple[bool, bool, int, str]:
    return (not each.blocked, not each.dead_letters, -each.depth, each.plan)
