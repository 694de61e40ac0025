"""Who listens to what happens: each listener's place in the trail, and what is on its way to it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from app.show import shallow

WAITING_LIMIT = 500  # messages for one listener: who is further behind is dropped, comes again and goes on from its place


@dataclass(frozen=True)
class Place:
    """Up to which event a listener has all, and up to which look of which watch it knows what machines did. `str()` is its text."""

    event: int
    watch: str = ""
    look: int = 0

    def __str__(self) -> str:
        return f"{self.event}-{self.watch}-{self.look}" if self.watch else str(self.event)


NOWHERE = Place(10**18 - 1)  # ahead of everything: whoever says so is told to fetch all anew


def parsed(written: str | None) -> Place | None:
    """The place that `str()` wrote, None for nothing, NOWHERE for anything else: nobody knows what that listener has."""
    if not written:
        return None
    found = re.fullmatch(r"([0-9]{1,18})(?:-([0-9a-f]{8})-([0-9]{1,15}))?", written, re.ASCII)
    return NOWHERE if found is None else Place(int(found[1]), found[2] or "", int(found[3] or 0))


def message(event: str, data: Any, place: Place | None = None) -> bytes:
    """One message of the stream; with `place`, a client that comes again says so."""
    head = "" if place is None else f"id: {place}\n"
    return f"{head}event: {event}\ndata: {json.dumps(data, default=shallow)}\n\n".encode()


class Listener:
    """One stream to a client. All but `place` belongs to the event loop's thread."""

    def __init__(self, place: Place | None) -> None:
        self.place = place  # where it begins
        self.begun = False  # it has what it missed, and hears what all hear
        self.away = False  # it knows that Postgres is away
        self.closed = False
        self._messages = list[bytes]()
        self._something = asyncio.Event()

    def give(self, messages: Sequence[bytes]) -> None:
        """Put messages on their way, or close the stream of a client that does not take them."""
        if len(self._messages) + len(messages) > WAITING_LIMIT:
            self.close()
        else:
            self._messages += messages
            self._something.set()

    def close(self) -> None:
        """End the stream."""
        self.closed = True
        self._something.set()

    async def take(self, seconds: float) -> bytes:
        """What has come, waiting for it for `seconds` at the most; nothing if nothing came."""
        try:
            async with asyncio.timeout(seconds):
                await self._something.wait()
        except TimeoutError:
            return b""
        self._something.clear()
        taken, self._messages = self._messages, []
        return b"".join(taken)
