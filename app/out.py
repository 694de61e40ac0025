"""The standard output, for readers that may leave before the end."""

from __future__ import annotations

import os
import sys

import typer


def write(text: str, *, now: bool = False) -> None:
    """Print `text` as it is; `now`: somebody watches. When the reader has left (as with `| head`), the call ends as one that is done."""
    try:
        sys.stdout.write(text)
        if now:
            sys.stdout.flush()
    except BrokenPipeError:
        nobody_reads()
        raise typer.Exit(0) from None


def nobody_reads() -> None:
    """Let what Python still writes at its end go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
