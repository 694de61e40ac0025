"""What a command prints, bounded: the beginning and the end are kept, the middle is counted."""

import threading
from dataclasses import dataclass

from ordering.text import REPLACEMENT

KIB = 1024


@dataclass(frozen=True)
class Snapshot:
    """An output at one moment: text from the beginning, text up to the end, and how many bytes between the two were dropped.

    Once the head is full it stays the same in all later snapshots. Where `dropped` is 0, head + tail is the whole output.
    """

    head: str
    tail: str
    dropped: int

    def text(self) -> str:
        """One text, which says in its middle how much was left out."""
        if not self.dropped:
            return self.head + self.tail
        return f"{self.head}\n... {self.dropped} bytes left out ...\n{self.tail}"


class Output:
    """Collects bytes; keeps at most `limit_head` from the beginning and `limit_tail` from the end. Safe between threads.

    Bytes that are not UTF-8 become U+FFFD, so the text can hold up to three times as many bytes as the limits say.
    """

    def __init__(self, limit_head: int = 64 * KIB, limit_tail: int = 64 * KIB) -> None:
        self._limit_head = limit_head
        self._limit_tail = limit_tail
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._lock = threading.Lock()

    @property
    def total(self) -> int:
        """Bytes fed so far."""
        return self._total

    def feed(self, data: bytes) -> None:
        """Take in what came next."""
        with self._lock:
            self._total += len(data)
            room = self._limit_head - len(self._head)
            if room > 0:
                self._head += data[:room]
                data = data[room:]
            if len(data) >= self._limit_tail:
                self._tail = bytearray(data[len(data) - self._limit_tail :])
            elif data:
                self._tail += data
                if len(self._tail) > self._limit_tail:
                    del self._tail[: len(self._tail) - self._limit_tail]

    def snapshot(self) -> Snapshot:
        """What is kept now, decoded; no character is cut in two at the seams."""
        with self._lock:
            head, tail, total = bytes(self._head), bytes(self._tail), self._total
        dropped = total - len(head) - len(tail)
        seam = _last_boundary(head)
        if not dropped:
            return Snapshot(_decode(head[:seam]), _decode(head[seam:] + tail), 0)
        start = _first_boundary(tail)
        return Snapshot(_decode(head[:seam]), _decode(tail[start:]), dropped + len(head) - seam + start)

    def text(self) -> str:
        """The snapshot as one text."""
        return self.snapshot().text()


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", REPLACEMENT)


def _last_boundary(data: bytes) -> int:
    """Where the data ends when a character begun but not finished is left out (a character has at most 4 bytes)."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if length > back else len(data)
    return len(data)


def _first_boundary(data: bytes) -> int:
    """Where the first whole character starts, when the data may begin in the middle of one."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return start
