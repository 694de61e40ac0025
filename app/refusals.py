"""Refused calls in the log: who, what and why, each kind once a minute however often it comes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from fastapi import Request
from starlette.responses import Response

from app.problem import Answering, Refused
from app.terminal_text import one_line

logger = logging.getLogger(__name__)
CALLER = "relevo.caller"  # where the scope has the caller's name, once it is known
LOGGED = frozenset({400, 401, 403, 408, 413, 415, 421, 429, 431})
QUIET_SECONDS = 60.0
KINDS = 1_000  # that are remembered


class Refusals:
    """Answers as `answering` does, and writes down what was refused before any verb ran. For one thread."""

    def __init__(self, answering: Answering, clock: Callable[[], float] = time.monotonic) -> None:
        self._answering, self._clock = answering, clock
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}  # when it was last written down, and how many came since

    def __call__(self, request: Request, error: Exception) -> Response:
        """The answer to the error."""
        if isinstance(error, Refused) and error.status_code in LOGGED:
            self._note(request, error)
        return self._answering(request, error)

    def _note(self, request: Request, error: Refused) -> None:
        address = request.client.host if request.client else "nowhere"
        caller = request.scope.get(CALLER)
        who = address if caller is None else f"{caller} at {address}"
        now, kind = self._clock(), (who, str(error.detail))
        last, more = self._seen.get(kind, (-QUIET_SECONDS, 0))
        if now - last < QUIET_SECONDS:
            self._seen[kind] = (last, more + 1)
            return
        if len(self._seen) >= KINDS:
            self._seen.clear()
        self._seen[kind] = (now, 0)
        asked = one_line(f"{request.method} {request.scope['path']}", 200)
        since = f" ({more} more like it since the last line)" if more else ""
        logger.warning("Refused (%d) to %s: %s: %s%s", error.status_code, one_line(who, 300), asked, one_line(str(error.detail)), since)
