"""A source of figures that may hang: asked anew for each scrape, for a bounded time, and never answered for by what it said before."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")
logger = logging.getLogger(__name__)


class Source(Generic[T]):
    """`read` in a thread of its own, one call at a time: scrapes at once wait for each other, and time out where the source hangs."""

    def __init__(self, name: str, read: Callable[[], T]) -> None:
        self.name = name
        self._read = read
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"source {name}")
        self._said: str | None = None

    def ask(self, within: float) -> T | None:
        """What was read for this call, or None if it failed or was not there `within` so many seconds."""
        asked = self._thread.submit(self._read)
        try:
            found = asked.result(within)
        except TimeoutError:
            asked.cancel()  # one that has not begun never does, so a source that hangs piles nothing up
            self._tell("no answer in time")
            return None
        except Exception as error:
            self._tell(_first_line(error))
            return None
        self._tell(None)
        return found

    def _tell(self, problem: str | None) -> None:
        # Once for each change: a scrape every few seconds would else fill the log.
        if problem != self._said:
            logger.log(logging.INFO if problem is None else logging.WARNING, "Source %s: %s", self.name, problem or "it answers")
            self._said = problem


def _first_line(error: Exception) -> str:
    return (str(getattr(error, "orig", None) or error).strip() or type(error).__name__).splitlines()[0]
