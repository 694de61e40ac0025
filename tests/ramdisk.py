"""Where a run of the tests writes: in memory, where there is room.

A database for each test is some 300 small files, made and removed again. On a disk's file system that took 0.4 s of the processor, more
than most tests; in memory it takes a tenth of that.
"""

import os
import shutil
import subprocess
from pathlib import Path

import psutil

SHARED_MEMORY = Path("/dev/shm")
PREFIX = "relevo-test-"
ROOM = 8 * 2**30  # bytes


def folder() -> Path | None:
    """A new folder in memory; None where there is not the room, or where nothing may be executed."""
    if not SHARED_MEMORY.is_dir():
        return None
    _remove_left()
    if min(shutil.disk_usage(SHARED_MEMORY).free, psutil.virtual_memory().available) < ROOM:
        return None
    made = SHARED_MEMORY / f"{PREFIX}{os.getpid()}"  # short: the path of a server's socket has 107 bytes
    made.mkdir(mode=0o700)
    script = made / "run"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o700)
    try:
        subprocess.run([script], check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        shutil.rmtree(made)
        return None
    return made


def _remove_left() -> None:
    """Remove what runs that were killed have left in memory."""
    for left in SHARED_MEMORY.glob(f"{PREFIX}*"):
        pid = left.name.removeprefix(PREFIX)
        if pid == str(os.getpid()) or (pid.isdecimal() and not psutil.pid_exists(int(pid))):
            shutil.rmtree(left, ignore_errors=True)  # another run may be at it
