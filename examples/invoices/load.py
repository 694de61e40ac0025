"""The demo's customers: they join, send invoices and drafts, ask again when they get no answer, and now and then for no reason."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from decimal import Decimal

import httpx

from examples.invoices.receiver import DECLINED

CLIENTS = 3
ANSWER_WITHIN = 10.0  # seconds
TRIES = 4


@dataclass(frozen=True)
class Member:
    """A customer as the load knows it. `refuses`: its accountant accepts nothing. `declined`: its card does not pay."""

    id: int
    name: str
    refuses: bool
    declined: bool


@dataclass
class Sent:
    """What the clients were told was stored. Times are those of answers to a first try, in seconds."""

    members: list[Member] = field(default_factory=list)
    invoices: dict[int, tuple[Member, str]] = field(default_factory=dict)  # by the number that was answered
    drafts: set[int] = field(default_factory=set)
    with_emit: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)
    asked_again: int = 0
    unanswered: list[str] = field(default_factory=list)


class Load:
    """`customers` join in the first half of `seconds`; each sends an invoice and a draft in turn, `rate` of each per second in all."""

    def __init__(self, web_url: str, receiver_url: str, *, seconds: float, customers: int, rate: float) -> None:
        self._receiver_url, self._seconds, self._customers, self._rate = receiver_url, seconds, customers, rate
        self._client = httpx.Client(base_url=web_url, timeout=ANSWER_WITHIN)
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(CLIENTS, thread_name_prefix="client")
        self._running: list[Future[None]] = []
        self.sent = Sent()

    def start(self) -> None:
        """Begin; `join` waits for the end."""
        self._running = [self._pool.submit(self._client_of, number) for number in range(CLIENTS)]

    def join(self) -> Sent:
        """Wait for the clients and give what they sent. Raises what stopped one."""
        for each in self._running:
            each.result()
        return self.sent

    def stop(self) -> None:
        """Let the clients end with the request that they are at."""
        self._over.set()
        self._pool.shutdown()
        self._client.close()

    def _client_of(self, number: int) -> None:
        began = time.monotonic()
        mine: list[Member] = []
        to_join = [each for each in range(self._customers) if each % CLIENTS == number]
        turn = 0
        while (passed := time.monotonic() - began) < self._seconds and not self._over.is_set():
            due = 1 + int(len(to_join) * passed / (self._seconds / 2))
            while len(mine) < min(due, len(to_join)) and not self._over.is_set():
                mine.append(self._join_in(to_join[len(mine)]))
            member = mine[turn % len(mine)]
            # Nine out of ten of what a refusing accountant would be told are left out: each is tried ten times.
            if not (member.refuses and turn % 10):
                self._send(member, f"{number}-{turn}", again=turn % 10 == 5)
            turn += 1
            self._over.wait(max(0.0, began + turn * CLIENTS / self._rate - time.monotonic()))

    def _join_in(self, number: int) -> Member:
        refuses, declined = number % 12 == 1, number % 12 == 4
        name = f"Customer {number:03}"
        new = {
            "name": name,
            "notify_url": f"{self._receiver_url}/{'never' if refuses else 'notices'}",
            "card": DECLINED if declined else "4242",
        }
        found, _ = self._post("/customers", new)
        member = Member(found or 0, name, refuses, declined)
        with self._lock:
            self.sent.members.append(member)
        return member

    def _send(self, member: Member, number: str, *, again: bool) -> None:
        total = str(Decimal(1000 + sum(number.encode()) * 7) / 100)
        for path, prefix, times in (("/invoices", "F", self.sent.with_emit), ("/drafts", "D", self.sent.without)):
            own = f"{prefix}-{number}"
            new = {"customer_id": member.id, "number": own, "total": total}
            found, took = self._post(path, new)
            if found is None:
                continue
            same = self._post(path, new)[0] if again else found
            with self._lock:
                if same not in (found, None):
                    self.sent.unanswered.append(f"{own} asked for again is another one")
                self.sent.asked_again += again
                if took is not None:
                    times.append(took)
                if path == "/invoices":
                    self.sent.invoices[found] = (member, own)
                else:
                    self.sent.drafts.add(found)

    def _post(self, path: str, new: Mapping[str, object]) -> tuple[int | None, float | None]:
        """What was answered, and how long that took if it was the first try; nothing where no try was answered."""
        for attempt in range(TRIES):
            if self._over.is_set():
                break
            start = time.monotonic()
            try:
                answer = self._client.post(path, json=new)
                if answer.status_code == 201:
                    return int(answer.json()["id"]), None if attempt else time.monotonic() - start
            except httpx.HTTPError:
                pass
            self._over.wait(0.2 * (attempt + 1))
        with self._lock:
            self.sent.unanswered.append(f"{path} {new.get('number') or new.get('name')}")
        return None, None
