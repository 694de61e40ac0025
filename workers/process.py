"""Which process this is, and whether another one still lives: pid and start time, on one host by boot id and pid namespace."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from ordering.session import Process, Session


def started(pid: int) -> int | None:
    """When the process began, in clock ticks since boot (field 22 of /proc/PID/stat, proc(5)); None if it is gone or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The second field is the program's name in brackets and may hold anything, brackets too.
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def boot_id() -> str:
    """The kernel's id of this boot of this host."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def pid_namespace() -> int:
    """The inode of the pid namespace: inside another one the same pid is another process."""
    return os.stat("/proc/self/ns/pid").st_ino


def myself(worker: str) -> Process:
    """This process, under the name of its worker."""
    pid = os.getpid()
    return Process(worker, socket.gethostname(), boot_id(), pid_namespace(), pid, started(pid) or 0)


def alive(session: Session) -> bool | None:
    """Whether the session's process lives: seen on this host, or None for a process on another one."""
    process = session.process
    if (process.boot_id, process.pid_namespace) != (boot_id(), pid_namespace()):
        return None
    return started(process.pid) == process.pid_started
