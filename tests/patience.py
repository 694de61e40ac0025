"""Waiting with a deadline, and measuring, on a machine that may stop for some seconds: such a standstill counts for nobody."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")
TICK = 0.05  # seconds
STANDSTILL = 0.5  # seconds that such a tick may last; one that lasts longer has found the machine standing still


class Stopwatch:
    """The seconds of a block, without those in which this process, and whatever it measures, could do nothing."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="stopwatch", daemon=True)

    def __enter__(self) -> Self:
        self._begun = self._last = time.monotonic()
        self._end: float | None = None
        self._stood = 0.0
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._end = self.seconds
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """So far, or of the whole block once it has ended."""
        if self._end is not None:
            return self._end
        now = time.monotonic()
        return now - self._begun - self._stood - _stood_still(now - self._last)

    @property
    def stood_still(self) -> float:
        """Seconds of the block that do not count."""
        return self._stood

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            now = time.monotonic()
            self._stood += _stood_still(now - self._last)
            self._last = now


def _stood_still(gap: float) -> float:
    return gap - TICK if gap > STANDSTILL else 0.0


def wait_until(predicate: Callable[[], T], seconds: float, what: str | Callable[[], str], pause: float = 0.02) -> T:
    """The first true value of `predicate`, asked for at most `seconds`; fails naming `what` did not come, asked for then."""
    if value := predicate():
        return value
    with Stopwatch() as watch:
        while not (value := predicate()):
            if watch.seconds > seconds:
                raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
            time.sleep(pause)
    return value
