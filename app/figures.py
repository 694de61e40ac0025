"""The figures around every page, read once for all pages of some seconds: to count a million waiting items takes 100 ms."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from ordering import samples, signals, workforce
from ordering.model import State
from ordering.samples import Past
from ordering.signals import Signals
from ordering.workforce import Workforce

SECONDS = 5.0  # that the figures of one look are good for; as often as a stream of events tells of new ones
AFTER_AN_ACT = 1.0  # where somebody has just changed something
OLDEST = 30.0  # seconds; older ones are waited for, while somebody reads anew
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

    def waiting(self, plan: str) -> int | None:
        """How many items of the plan waited at the time of the look."""
        found = self.by_name.get(plan)
        return None if found is None else found.items[State.WAITING]


class Shared:
    """The latest figures of one server. Whoever finds them old reads anew, and the others go on with what there is meanwhile."""

    def __init__(self) -> None:
        self._reading = threading.Lock()
        self._found: tuple[float, Figures] | None = None

    def of(self, tx: Connection, *, acted: bool = False) -> Figures:
        """Figures that are not too old, read in `tx` if need be. `acted`: somebody has just changed something, and looks for it."""
        found = self._found
        age = None if found is None else time.monotonic() - found[0]
        if found is not None and age is not None and age < (AFTER_AN_ACT if acted else SECONDS):
            return found[1]
        if not self._reading.acquire(blocking=age is None or age > OLDEST):
            assert found is not None
            return found[1]
        try:
            if self._found is not found and self._found is not None:
                return self._found[1]  # read while we waited
            figures = _read(tx)
            self._found = (time.monotonic(), figures)
            return figures
        finally:
            self._reading.release()


def _read(tx: Connection) -> Figures:
    every = signals.signals(tx)
    first = sorted(every, key=_weight)[:SHOWN]
    past = samples.past(tx, [each.plan for each in first])
    return Figures({each.plan: each for each in every}, first, past, workforce.workforce(tx))


def _weight(each: Signals) -> tuple[bool, bool, int, str]:
    return (not each.blocked, not each.dead_letters, -each.depth, each.plan)
