"""What each pool process shows its worker's parent, in memory that they share: since when its body runs, and that it ends itself."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

SLOTS = 1000  # pool processes of a worker at the most
PID, BEGAN, ENDS_ITSELF = range(3)

# Made before the pool forks. A cell is written by its one process and read by the parent, whole.
_cells = memoryview(mmap.mmap(-1, SLOTS * 3 * 8)).cast("d")
_row: int | None = None  # where this pool process writes


def begin(slot: int) -> None:
    """Take the row of the pool's `slot` (from 0), which a dead process may have had before. Call in the pool process."""
    global _row
    _row = slot * 3
    _cells[_row + BEGAN] = _cells[_row + ENDS_ITSELF] = 0.0
    _cells[_row + PID] = os.getpid()


def _forget() -> None:
    global _row
    _row = None  # what a body forks is no pool process


os.register_at_fork(after_in_child=_forget)


@contextmanager
def body() -> Iterator[None]:
    """The block in which a body runs."""
    if _row is None:
        yield
        return
    _cells[_row + BEGAN] = time.monotonic()
    try:
        yield
    finally:
        if _row is not None:
            _cells[_row + BEGAN] = 0.0


def end_myself() -> None:
    """Say that this process is about to end itself, and that no body is to blame."""
    if _row is not None:
        _cells[_row + ENDS_ITSELF] = 1.0


def body_since(pid: int) -> float | None:
    """Since when, on the monotonic clock of this host, the pool process runs a body; None if it runs none."""
    row = _row_of(pid)
    return None if row is None else _cells[row + BEGAN] or None


def ends_itself(pid: int) -> bool:
    """Whether the pool process has said so; until another one takes its slot."""
    row = _row_of(pid)
    return row is not None and bool(_cells[row + ENDS_ITSELF])


def _row_of(pid: int) -> int | None:
    return next((row for row in range(0, len(_cells), 3) if _cells[row + PID] == pid), None)
