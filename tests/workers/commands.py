"""Commands for the tests of `shell`, what they printed, and whether a process is still there."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.patience import Stopwatch
from workers.shell import run


def until(true: Callable[[], object], seconds: float = 30) -> bool:
    """Whether it became true within so many seconds."""
    with Stopwatch() as watch:
        while not true():
            if watch.seconds > seconds:
                return False
            time.sleep(0.005)
    return True


def python(code: str, *words: str) -> list[str]:
    """The command that runs this code."""
    return [sys.executable, "-S", "-c", code, *words]


def printed(command: list[str], **options: Any) -> str:
    """What the command printed, all of it, as it was told to whoever stores it."""
    told = [("", "", 0)]
    run(command, on_change=lambda *now: told.append(now), **options)
    head, tail, dropped = told[-1]
    assert dropped == 0
    return head + tail


def alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
