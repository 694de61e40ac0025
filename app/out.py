"""The standard streams of a command. Whoever reads may leave, and a disk may be full: what a command does does not depend on it."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import TextIO

from ordering.errors import RelevoError

LEFT = (errno.EPIPE, errno.EIO)  # the reader has seen enough (`| head`), or the terminal is gone


class Unwritten(RelevoError):
    """The command has done its work, and its answer could not be written."""

    exit_code = 1

    def __init__(self, error: OSError) -> None:
        super().__init__(f"The answer could not be written: {error.strerror or error}; what was changed stays changed.")


class Lossy(io.FileIO):
    """A file descriptor that takes everything; `error` is why something was lost, unless nobody was there to read it."""

    error: OSError | None = None

    def write(self, data: bytes | memoryview, /) -> int:  # type: ignore[override]
        """Write what can be written, and be done with the rest."""
        try:
            while (written := super().write(data)) is None:  # whoever called made it non-blocking
                select.select([], [self], [])
            return written
        except OSError as error:
            if error.errno not in LEFT:
                self.error = self.error or error
            return memoryview(data).nbytes


def install() -> None:
    """Let the process write to its standard streams through Lossy; what the locale cannot write is escaped."""
    sys.stdout, sys.stderr = _lossy(sys.stdout), _lossy(sys.stderr)


def _lossy(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed by who called (`>&-`): what is said goes nowhere, and what is done is done
        return open(os.devnull, "w", encoding="utf-8")
    assert isinstance(stream, io.TextIOWrapper)
    raw = Lossy(stream.fileno(), "w", closefd=False)
    buffer = io.BufferedWriter(raw)  # type: ignore[type-var]  # whose write takes less than the stubs ask for, and all that it is given
    return io.TextIOWrapper(
        buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering, write_through=stream.write_through
    )


def lost() -> OSError | None:
    """Write what is on its way to the standard output. Why something of it was lost, or None."""
    sys.stdout.flush()
    raw = getattr(sys.stdout.buffer, "raw", None)
    return raw.error if isinstance(raw, Lossy) else None


def write(text: str, *, now: bool = False) -> None:
    """Print `text` as it is; `now`: somebody watches."""
    sys.stdout.write(text)
    if now:
        sys.stdout.flush()
