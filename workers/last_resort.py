"""The end by force of a process that may hang while it ends."""

from __future__ import annotations

import logging
import os
import threading

logger = logging.getLogger(__name__)


def end_in(seconds: float) -> None:
    """End this process (code 1) in so many seconds, should it live until then; the log says so. Returns at once."""

    def end() -> None:
        logger.error("This worker's stop hangs: it is ended by force after %g s.", seconds)
        os._exit(1)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
