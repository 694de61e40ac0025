"""Running a body: whatever it returns or raises becomes a value that can be recorded."""

from __future__ import annotations

import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from celery.exceptions import Ignore, Reject, Retry, SoftTimeLimitExceeded

from ordering.decide import AlreadyDone, Ended, Failed, NotYet, Succeeded
from ordering.model import Json
from ordering.text import storable
from workers import forked, shell, slate
from workers.plain import PlainError
from workers.values import from_json as from_json
from workers.values import to_json as to_json

TRACE_LIMIT = 12_000  # characters of a traceback that are kept; the end tells most, so the cut is in the middle
DEEPEST = 60  # frames of a traceback that are written out: a recursion of 10,000 says no more than its two ends


class TimedOut(PlainError):
    """A command was still running at the end of its own `timeout`; the message is one sentence."""


class Stopped(BaseException):
    """TERM came: this process was told to let go of its body (cancel, shutdown, lost session)."""


class Postpone(Exception):
    """What a precheck raises, or returns, to put the item off until `until` (with a time zone)."""

    def __init__(self, until: datetime, reason: str = "") -> None:
        super().__init__(until, reason)
        self.until, self.reason = until, reason


class Done(Exception):
    """What a precheck raises, or returns, when the work is done already: the item settles as skipped, with the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RetryIn(Retry):
    """A retry that the task asked for; the delay is a row in Postgres, never a message."""

    def __init__(
        self, delay: timedelta, cause: BaseException | None, args: Json = None, kwargs: Json = None, allowed: int | None = None
    ) -> None:
        super().__init__(message="retry", exc=None, when=delay.total_seconds())
        self.delay, self.cause, self.new_args, self.new_kwargs, self.allowed = delay, cause, args, kwargs, allowed

    def __reduce__(self) -> Any:
        # The pool pickles it on its way to the worker's parent, where only the delay is shown; the cause may not bear that.
        return type(self), (self.delay, None)


@dataclass
class Told:
    """Whether TERM has come in the block of `stoppable`, whatever the body made of it."""

    to_stop: bool = False


@contextmanager
def stoppable() -> Iterator[Told]:
    """TERM raises Stopped in this block, which must run in the main thread. Once: a body that lets go slowly is not hit again."""
    told = Told()

    def stop(*_: object) -> None:
        told.to_stop = True
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Stopped

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield told
    finally:
        signal.signal(signal.SIGTERM, before)


class _SoftLimit:
    """Celery's signal for the soft time limit: what it means is for bodies alone."""

    def __init__(self) -> None:
        self.handler: Any = None  # Celery's, which raises SoftTimeLimitExceeded
        self.came = False

    def note(self, *_: object) -> None:
        self.came = True


_soft_limit = _SoftLimit()


@contextmanager
def soft_limit_waits() -> Iterator[None]:
    """In this block the soft time limit waits for a body to begin. Raised amid a claim or a finish it would leave the item out for ever."""
    _soft_limit.came = False
    _soft_limit.handler = signal.signal(signal.SIGUSR1, _soft_limit.note)
    try:
        yield
    finally:
        handler, _soft_limit.handler = _soft_limit.handler, None
        signal.signal(signal.SIGUSR1, handler)


def _limited(call: Callable[[], Any]) -> Any:
    if _soft_limit.handler is None:
        return forked.ends_here(call)
    signal.signal(signal.SIGUSR1, _soft_limit.handler)
    try:
        if _soft_limit.came:
            raise SoftTimeLimitExceeded
        with slate.body():
            return forked.ends_here(call)
    finally:
        signal.signal(signal.SIGUSR1, _soft_limit.note)


@contextmanager
def undisturbed(*, unless: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """The soft time limit and TERM wait for the end of this block: raised amid a write they would break its connection and get lost.

    Raises SystemExit at TERM if `unless` says that there is nothing to wait for.
    """
    if threading.current_thread() is not threading.main_thread():  # which no signal disturbs
        yield
        return
    came: list[int] = []

    def note(number: int, _: object) -> None:
        if number == signal.SIGTERM and unless():
            raise SystemExit(0)
        came.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGUSR1, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


def checked(precheck: Callable[[], Any]) -> Ended | None:
    """Run `precheck`: None if it lets go, by returning None or True; else how that ended. Raises Stopped only."""

    def call() -> None:
        verdict = precheck()
        if isinstance(verdict, (Done, Postpone)):
            raise verdict
        if verdict is not None and verdict is not True:
            raise TypeError(f"precheck returned {verdict!r}; it returns None, True, Done(reason) or Postpone(until).")

    ended = run(call, exhausted=lambda: False)
    return None if isinstance(ended, Succeeded) else ended


def run(call: Callable[[], Any], *, exhausted: Callable[[], bool]) -> Ended:
    """Run `call` and say how that ended. Raises Stopped only.

    `exhausted` tells, after a failure, whether the task's own retries are used up.
    """
    try:
        return Succeeded(to_json("result", _limited(call)))
    except Stopped:
        raise
    except Done as done:
        return AlreadyDone(done.reason)
    except shell.AlreadyDone as done:
        return AlreadyDone(str(done))
    except Postpone as put_off:
        if put_off.until.tzinfo is None:
            return Failed("Postpone", "The time of Postpone has no time zone.", final=True)
        return NotYet(put_off.until, put_off.reason)
    except RetryIn as retry:
        reason, error = ("Retry", "The task asked for a retry.") if retry.cause is None else described(retry.cause)
        return Failed(reason, error, retry_in=retry.delay, args=retry.new_args, kwargs=retry.new_kwargs, allowed=retry.allowed)
    except Ignore:
        return Succeeded(None)
    except Reject as reject:
        return Failed("Reject", f"The task rejected its message: {_text(reject)}", final=True)
    except SoftTimeLimitExceeded:
        return Failed("SoftTimeLimitExceeded", "The soft time limit was exceeded.")
    except PlainError as error:
        return Failed(type(error).__name__, storable(str(error)), final=exhausted() or isinstance(error, ValueError))
    except BaseException as error:  # SystemExit and KeyboardInterrupt too: a body that says so has failed, no more
        reason, text = described(error)
        return Failed(reason, text, final=exhausted())


def described(error: BaseException) -> tuple[str, str]:
    """The class and the readable text of an error, whatever its str() does: storable, cut in the middle, with a traceback."""
    name = type(error).__name__
    headline = f"{name}: {_text(error)}" if _text(error) else name
    try:
        frames = traceback.extract_tb(error.__traceback__)
        shown = list(frames) if len(frames) <= DEEPEST else [*frames[: DEEPEST // 2], *frames[-DEEPEST // 2 :]]
        trace = "".join(traceback.format_list(shown))
        if len(frames) > DEEPEST:
            trace = f"({len(frames)} frames, the first and last {DEEPEST // 2} shown)\n{trace}"
    except Exception as broken:
        trace = f"(the traceback cannot be shown: {type(broken).__name__})"
    if isinstance(error, BaseExceptionGroup):
        headline += "".join(f"\n  - {type(inner).__name__}: {storable(_text(inner), 500)}" for inner in error.exceptions[:20])
    return storable(name, 200), f"{storable(headline, 6000)}\n\n{storable(trace, TRACE_LIMIT)}".rstrip()


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"(str() of the error raised {type(broken).__name__})"


def seconds_until(when: datetime) -> timedelta:
    """How long until `when`; a naive time is UTC, as in Celery with enable_utc."""
    aware = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(timedelta(0), aware - datetime.now(UTC))
