"""A client of the stream of events for tests: a thread reads it, and the test waits for what it wants to see."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.patience import wait_until


@dataclass
class Message:
    """One message of the stream, and when it came (monotonic seconds)."""

    event: str
    data: Any
    at: float


@dataclass
class Stream:
    """What came so far. `place` is what a browser would come back with; `ended`: the server closed the stream."""

    response: httpx.Response
    messages: list[Message] = field(default_factory=list)
    comments: int = 0
    place: str = ""
    ended: bool = False

    def read(self) -> None:
        event, data = "", list[str]()
        try:
            for line in self.response.iter_lines():
                name, _, value = line.partition(": ")
                match name:
                    case "":
                        if line.startswith(":"):
                            self.comments += 1
                        elif data:
                            self.messages.append(Message(event, json.loads("\n".join(data)), time.monotonic()))
                            event, data = "", []
                    case "event":
                        event = value
                    case "data":
                        data.append(value)
                    case "id":
                        self.place = value
        except httpx.HTTPError:
            pass
        self.ended = True

    def of(self, event: str) -> list[Any]:
        """The data of all messages of this kind so far."""
        return [each.data for each in self.messages if each.event == event]

    def wait(self, event: str, within: float = 30.0, count: int = 1) -> Any:
        """The data of the message of this kind that is number `count`; fails after `within` seconds."""
        wait_until(lambda: len(self.of(event)) >= count, within, lambda: f"a message {event}, but {self.messages}", pause=0.005)
        return self.of(event)[count - 1]


@contextmanager
def listening(client: httpx.Client, *, place: str | None = None, path: str = "/api/events/stream", **headers: str) -> Iterator[Stream]:
    """A stream that is read for the block."""
    if place is not None:
        headers["Last-Event-ID"] = place
    with httpx.Client(base_url=client.base_url, timeout=60, trust_env=False) as own, own.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200, response.read()
        stream = Stream(response)
        thread = threading.Thread(target=stream.read)
        thread.start()
        try:
            yield stream
        finally:
            # The reading thread sits in a read; only the end of the connection ends that.
            network: Any = response.extensions["network_stream"]
            with suppress(OSError):  # it has ended by itself
                network.get_extra_info("socket").shutdown(2)
            thread.join(60)
    assert not thread.is_alive()
