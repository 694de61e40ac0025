"""Up to which id the trail is complete. Pure: no SQL.

Ids are given when an event is written and seen when its transaction commits, so a lower one may come after a higher one. Whoever
goes on from an id must not pass over such a late one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PATIENCE = 2.0  # seconds: an id is taken a moment before its transaction has a number


@dataclass(frozen=True)
class Mark:
    """When `top` was the highest id seen, `xid` was the next transaction's number; `at` is the moment, in seconds."""

    top: int
    xid: int
    at: float


class Horizon:
    """Follows which events were told. All up to `low` were, or will never be there; `told` are those above it."""

    def __init__(self, known: Iterable[int], *, low: int = 0) -> None:
        """`known`: all ids above `low` that are there at the start."""
        self.told = set(known)
        self.low = low
        self._mark: Mark | None = None
        self._close_up()

    @property
    def needs_mark(self) -> bool:
        """Whether something is missing between the ids, and `mark` should be called."""
        return bool(self.told) and self._mark is None

    def mark(self, xid: int, at: float) -> None:
        """Note that every transaction that began until now has a lower number than `xid`."""
        self._mark = Mark(max(self.told), xid, at)

    def take(self, ids: Iterable[int], oldest: int, at: float) -> None:
        """`ids` are told now; `oldest` was the number of the oldest open transaction when they were read."""
        self.told.update(ids)
        if self._mark is not None and oldest > self._mark.xid and at - self._mark.at >= PATIENCE:
            # Whoever could still bring one of those ids has ended, and what came of it was read by now.
            self.low = max(self.low, self._mark.top)
            self._mark = None
        self._close_up()

    def _close_up(self) -> None:
        self.told = {each for each in self.told if each > self.low}
        while self.low + 1 in self.told:
            self.low += 1
            self.told.discard(self.low)
        if self._mark is not None and self._mark.top <= self.low:
            self._mark = None
