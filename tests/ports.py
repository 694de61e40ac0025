"""Ports for services of tests that must be told theirs: nobody else is given one of them between the choice and its use."""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

# Below those that the kernel gives to whoever asks for any, of all tests on this machine by a lock on a file.
PORTS = range(16_000, 30_000)
_held: list[int] = []  # descriptors, until this process ends


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on, for this process of the tests alone."""
    folder = Path(tempfile.gettempdir()) / f"relevo-test-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for port in random.sample(PORTS, 1000):
        lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", port))
        except OSError:
            os.close(lock)
            continue
        _held.append(lock)
        return port
    raise AssertionError("none of a thousand ports is free")
