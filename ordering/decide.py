"""What follows from how a body ended. Pure: frozen values in, a frozen value out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from ordering.model import Json, OnInterrupt, Outcome, State

BACKOFF = timedelta(seconds=10)
BACKOFF_CAP = timedelta(hours=1)
DEFAULT_MAX_ATTEMPTS = 4  # Celery's own default: three retries


@dataclass(frozen=True)
class Succeeded:
    """The body returned; `result` is JSON."""

    result: Json


@dataclass(frozen=True)
class Failed:
    """The body raised. `retry_in` is what the task itself asked for; `final` forbids a try on the platform's own account.

    `allowed` is how many tries the task asked for with this retry, in place of the item's. `counts` is False for a retry of a step,
    which uses up the step's retries and no try of the item.
    """

    reason: str
    error: str
    retry_in: timedelta | None = None
    final: bool = False
    args: list[Json] | None = None
    kwargs: dict[str, Json] | None = None
    allowed: int | None = None
    counts: bool = True


@dataclass(frozen=True)
class AlreadyDone:
    """A precheck or `unless` found the work done by another way; the body did not run."""

    reason: str


@dataclass(frozen=True)
class NotYet:
    """A precheck put the item off; the body did not run."""

    until: datetime
    reason: str


@dataclass(frozen=True)
class PutBack:
    """Nothing is known of the item: its batch raised `error`, or did not come to it (None). It goes out again.

    `limit`: the largest batch that it may be in from now on.
    """

    limit: int | None = None
    reason: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Asleep:
    """The body sleeps at its step `number` for `duration` from now, and goes on behind it when the item is fed again."""

    number: int
    name: str
    duration: timedelta


Ended = Succeeded | Failed | AlreadyDone | NotYet | PutBack | Asleep


@dataclass(frozen=True)
class Next:
    """The state that follows. `outcome` is None where no attempt was made; `delay` from now, for a retry.

    `keeps_head`: the item keeps its place if its run halts at a failure.
    """

    state: State
    outcome: Outcome | None
    counts: bool = False
    keeps_head: bool = False
    delay: timedelta | None = None


def backoff(tries: int, jitter: float) -> timedelta:
    """The delay before try `tries` + 1: full jitter over 10 s x 2^tries, capped at an hour; `jitter` is in 0..1.

    Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015 ("full jitter").
    """
    return min(BACKOFF_CAP, BACKOFF * int(2 ** min(tries, 20))) * jitter


def after(ended: Ended, *, serial: bool, tries: int, max_attempts: int, jitter: float) -> Next:
    """The item's next state after its body `ended`; `tries` are those used up before this one.

    `jitter` in 0..1 is drawn by the caller.
    """
    match ended:
        case Succeeded():
            return Next(State.SUCCEEDED, Outcome.SUCCEEDED, counts=True)
        case AlreadyDone():
            return Next(State.SKIPPED, None)
        case NotYet():
            return Next(State.POSTPONED, None)
        case PutBack(error=error):
            return Next(State.WAITING, None if error is None else Outcome.FAILED)
        case Asleep(duration=duration):
            return Next(State.POSTPONED, None, delay=duration)
        case Failed(retry_in=timedelta() as retry_in, counts=False):
            return Next(State.WAITING, Outcome.FAILED, delay=retry_in)
        case Failed(retry_in=retry_in, final=final, allowed=allowed):
            left = tries + 1 < (allowed or max_attempts)
            if retry_in is not None and left:
                return Next(State.WAITING, Outcome.FAILED, counts=True, delay=retry_in)
            if not serial and left and not final:
                return Next(State.WAITING, Outcome.FAILED, counts=True, delay=backoff(tries, jitter))
            return Next(State.FAILED, Outcome.FAILED, counts=True, keeps_head=serial)
        case _ as never:
            assert_never(never)


def runs_again(on_interrupt: OnInterrupt, tries: int, max_attempts: int) -> bool:
    """Whether an interrupted item is fed again by itself; `tries` includes the interrupted one if that counted."""
    match on_interrupt:
        case OnInterrupt.HOLD:
            return False
        case OnInterrupt.REQUEUE:
            return tries < max_attempts
        case _ as never:
            assert_never(never)
