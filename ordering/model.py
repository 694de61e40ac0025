"""The nouns of the platform as frozen values. Pure: no SQL, no input or output."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

DEFAULT_QUEUE = "relevo"  # of tasks that name none
Json = Any  # what `json.loads` gives: dict, list, str, int, float, bool or None


class State(StrEnum):
    """Where an item stands. `running` is never stored: it is `dispatched` with a claimed dispatch."""

    WAITING = "waiting"
    POSTPONED = "postponed"
    DISPATCHED = "dispatched"
    RUNNING = "running"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SUCCEEDED = "succeeded"
    SKIPPED = "skipped"
    RESOLVED = "resolved"
    CANCELLED = "cancelled"


UNRESOLVED = (State.FAILED, State.INTERRUPTED)
SETTLED = (State.SUCCEEDED, State.SKIPPED, State.RESOLVED, State.CANCELLED)


class OnFailure(StrEnum):
    """What a run does when an item fails: keep the line waiting for a person, or let the next one go."""

    HALT = "halt"
    CONTINUE = "continue"


class OnInterrupt(StrEnum):
    """What happens to an item whose process went away: a person decides, or it runs again."""

    HOLD = "hold"
    REQUEUE = "requeue"


class Missed(StrEnum):
    """What a schedule does about ticks that nobody was there to make: one item for all of them, none, or each (the latest 100)."""

    ONE = "one"
    SKIP = "skip"
    ALL = "all"


class Outcome(StrEnum):
    """How an attempt ended. Interrupted is not failed: nobody knows how far it got."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class StepKind(StrEnum):
    """A step runs a function; a sleep waits in Postgres."""

    STEP = "step"
    SLEEP = "sleep"


@dataclass(frozen=True)
class Plan:
    """A named, ordered list of items. `concurrency` 1 is a serial plan, more is a stream.

    What is settled stays for `keep`; `rate` is how many items a stream hands out per second, None as many as its window holds.
    """

    id: int
    name: str
    title: str
    concurrency: int
    on_failure: OnFailure
    on_interrupt: OnInterrupt | None
    max_attempts: int | None
    autostart: bool
    keep: timedelta
    rate: Decimal | None

    @property
    def serial(self) -> bool:
        return self.concurrency == 1


@dataclass(frozen=True)
class NewItem:
    """An item to be added. `not_before`, or `delay` from now by the database's clock, puts the start off.

    `key` makes a second add of the same content return the first item.

    `entry` is the catalogue entry it came from: only one unsettled item of an entry exists in a plan.
    `repairs` is the id of the failed item that this one repairs. `on_interrupt` and `max_attempts` (tries) override
    what the task and the plan say.
    """

    task: str
    args: list[Json] = field(default_factory=list)
    kwargs: dict[str, Json] = field(default_factory=dict)
    title: str = ""
    kind: str = ""
    key: str | None = None
    not_before: datetime | None = None
    delay: timedelta | None = None
    entry: str | None = None
    repairs: int | None = None
    on_interrupt: OnInterrupt | None = None
    max_attempts: int | None = None


@dataclass(frozen=True)
class Item:
    """One piece of work as it stands in the database."""

    id: int
    plan_id: int
    plan: str
    position: Decimal
    state: State
    at_head: bool
    task: str
    args: list[Json]
    kwargs: dict[str, Json]
    title: str
    kind: str
    key: str | None
    entry: str | None
    repairs: int | None
    fact: int | None
    not_before: datetime | None
    on_interrupt: OnInterrupt | None
    max_attempts: int | None
    attempts: int
    tries: int
    replays: int
    error: str | None
    result: Json
    created_at: datetime
    settled_at: datetime | None


@dataclass(frozen=True)
class First:
    """In front of everything that waits."""


@dataclass(frozen=True)
class Last:
    """Behind everything that is not settled."""


@dataclass(frozen=True)
class After:
    """Right behind the waiting or postponed item with this id."""

    item: int


@dataclass(frozen=True)
class Before:
    """Right in front of the waiting or postponed item with this id."""

    item: int


Place = First | Last | After | Before


@dataclass(frozen=True)
class Dispatch:
    """One message to the broker: a pointer. Its id is the fencing token."""

    id: UUID
    plan_id: int
    queue: str
    task: str
    argsrepr: str
    kwargsrepr: str


@dataclass(frozen=True)
class Claimed:
    """What a worker may run: the item as it is now, not as it was when the message went out.

    `size`: how many items its dispatch was fed with. `stepped`: earlier runs of its body have left steps.
    """

    dispatch_id: UUID
    item_id: int
    plan_id: int
    plan: str
    serial: bool
    task: str
    args: list[Json]
    kwargs: dict[str, Json]
    attempt: int
    tries: int
    max_attempts: int
    on_interrupt: OnInterrupt
    created_at: datetime
    stepped: bool
    size: int = 1
