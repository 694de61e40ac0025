"""How often somebody may do something: a bucket of tokens for each name, filled at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable

NAMES = 10_000  # that are remembered; a bucket that is full again is as good as none


class Buckets:
    """Each name may do `burst` things at once, and `rate` a second in the long run. For one thread."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> float:
        """Take one, or say in how many seconds there will be one (0: taken)."""
        now = self._clock()
        left, since = self._left.get(name, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1:
            return (1 - left) / self._rate
        if name not in self._left and len(self._left) >= NAMES:
            self._left = {each: kept for each, kept in self._left.items() if kept[0] + (now - kept[1]) * self._rate < self._burst}
        self._left[name] = (left - 1, now)
        return 0.0
