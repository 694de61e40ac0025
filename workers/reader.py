"""Reads a command's output while it runs, and tells what is kept of it now and then."""

import logging
import os
import select
import threading
from collections.abc import Callable

from workers.output import Output

log = logging.getLogger(__name__)

EVERY_SECONDS = 0.5
CHUNK = 64 * 1024
REST = 32  # chunks to read at most once the command's tree is gone: more than the largest pipe holds (1 MiB)
JOIN_SECONDS = 5.0

OnChange = Callable[[str, str, int], None]


class Reader:
    """Feeds an Output from a pipe in a thread of its own; a second thread calls `on_change(head, tail, dropped)`.

    Two threads, so that a slow `on_change` (a database that is restarting) neither stops the reading nor, through a full pipe, the
    command. It is called at most every 0.5 s, only after a change, and a last time at the end when something came since. What it raises
    is logged and it is called again at the next change.
    """

    def __init__(self, descriptor: int, output: Output, on_change: OnChange | None) -> None:
        """Takes over the reading end of the pipe and closes it."""
        self._descriptor = descriptor
        self._output = output
        self._on_change = on_change
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
        self._changed = threading.Event()
        self._done = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start reading."""
        os.set_blocking(self._descriptor, False)
        self._begin(self._read, "output reader")
        if self._on_change is not None:
            self._begin(self._tell, "output teller")

    def finish(self, note: str = "") -> None:
        """Take in what is still in the pipe, tell it, with `note` behind it, and close.

        Call it when the command's tree is gone; waits at most 10 s.
        """
        os.eventfd_write(self._wake, 1)
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
            if thread.is_alive():  # it ends by itself; a last change told late is the caller's to refuse
                log.warning("the %s needs more than %s s to end", thread.name, JOIN_SECONDS)
                return
        os.close(self._wake)
        os.close(self._descriptor)
        if note:
            self._output.feed(note.encode())
            if self._on_change is not None:
                self._say(self._on_change)

    def _begin(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _read(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        try:
            while self._wake not in (ready := [number for number, _ in poll.poll()]):
                if self._descriptor in ready and not self._take():
                    return
            # A process outside the tree may hold the pipe open: take what is there, do not wait for its end.
            for _ in range(REST):
                if not self._take():
                    return
        finally:
            self._done.set()
            self._changed.set()

    def _take(self) -> bool:
        """Feed one chunk; False when there is none."""
        try:
            data = os.read(self._descriptor, CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._output.feed(data)
            self._changed.set()
        return bool(data)

    def _tell(self) -> None:
        assert self._on_change is not None
        told = 0
        last = False
        while not last:
            self._changed.wait()
            self._done.wait(EVERY_SECONDS)
            self._changed.clear()
            last = self._done.is_set()  # after the clear: the end sets both, and must not be cleared unseen
            if (total := self._output.total) == told:
                continue
            told = total
            self._say(self._on_change)

    def _say(self, on_change: OnChange) -> None:
        now = self._output.snapshot()
        try:
            on_change(now.head, now.tail, now.dropped)
        except Exception:
            log.exception("the output so far could not be handed on; the next change is handed on again")
