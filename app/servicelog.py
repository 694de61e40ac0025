"""One readable log of all services: each line with the time and the name of the service that said it."""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Self

#: The file is kept at this size, in bytes, with as much again of what came before.
FILE_LIMIT = 10_000_000
#: Lines on the way to a terminal that is slow or held; beyond that services wait, and the supervisor's own lines are dropped.
WAITING_LIMIT = 10_000


class _File(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:
        """A full disk costs log lines, not the services."""


class _Terminal(logging.StreamHandler):  # type: ignore[type-arg]  # not generic at run time
    def handleError(self, record: logging.LogRecord) -> None:
        """A reader that went away (`relevo up | head`) costs log lines, not the services."""


class ServiceLog:
    """Writes lines to a file, or to stdout where none is given, in a thread of its own. Safe from any thread."""

    def __init__(self, file: Path | None = None, as_json: bool = False) -> None:
        self._as_json = as_json
        self._handler: logging.Handler = _Terminal(sys.stdout) if file is None else _File(file, maxBytes=FILE_LIMIT, backupCount=1)
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING_LIMIT)
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)

    def __enter__(self) -> Self:
        self._writer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._lines.put(None, timeout=1)
        except queue.Full:
            return
        # Bounded, since the terminal may be held for ever.
        self._writer.join(timeout=2)

    def said(self, service: str, line: str) -> None:
        """A line of a service; waits while the log is full, as the service would at a terminal."""
        self._lines.put(self._format(service, line))

    def note(self, line: str) -> None:
        """A line of the supervisor; never waits."""
        try:
            self._lines.put_nowait(self._format("relevo", line))
        except queue.Full:
            return

    def _format(self, service: str, line: str) -> str:
        now = datetime.now(UTC)
        if not self._as_json:
            return f"{now:%Y-%m-%dT%H:%M:%SZ} {service:<8} | {line}"
        try:
            told = json.loads(line)
            if isinstance(told, dict):
                return _json({"service": service} | told)
        except (ValueError, RecursionError):
            pass  # a text, or nested too deeply to be looked into
        return _json({"service": service, "time": now.isoformat(), "message": line})

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            self._handler.handle(logging.LogRecord("relevo", logging.INFO, "", 0, line, None, None))
        self._handler.close()


def _json(told: dict[str, Any]) -> str:
    # Half a surrogate pair becomes the escape that JSON has for it.
    return json.dumps(told, ensure_ascii=False).encode("utf-8", "backslashreplace").decode()
