"""One readable log for all services: text for people, or JSON, one object a line."""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal

import structlog
from billiard.util import get_logger


def configure(kind: Literal["text", "json"]) -> None:
    """Send every record of this process to stderr, in `kind`; Celery and kombu below WARNING only where it tells something."""
    stamp = structlog.processors.TimeStamper(fmt="iso" if kind == "json" else "%H:%M:%S", utc=kind == "json")
    shared: list[Any] = [structlog.stdlib.add_log_level, structlog.stdlib.add_logger_name, structlog.stdlib.ExtraAdder(), stamp]
    renderer: Any = structlog.processors.JSONRenderer()
    if kind == "text":
        renderer = structlog.dev.ConsoleRenderer(
            colors=False, pad_event_to=0, pad_level=False, exception_formatter=structlog.dev.plain_traceback
        )
    else:
        shared.append(structlog.processors.format_exc_info)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer]
        )
    )
    handler.addFilter(_without_known_traces)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # Celery says each message twice at INFO; items have a history.
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    logging.captureWarnings(True)
    pool = get_logger()  # billiard's: it keeps its records to itself and prints them as they are
    pool.propagate, pool.handlers[:] = True, []
    pool.setLevel(logging.WARNING)


def _without_known_traces(record: logging.LogRecord) -> bool:
    # A pool process that died is one line: where billiard noticed it says nothing, and the item's history has the evidence.
    error = record.exc_info[1] if record.exc_info else None
    cause = getattr(error, "exc", error)  # billiard wraps what it hands over
    if type(cause).__name__ in ("WorkerLostError", "TimeLimitExceeded", "Terminated"):
        record.msg, record.args, record.exc_info = "A pool process ended before its body did: %s", (cause,), None
    return True
