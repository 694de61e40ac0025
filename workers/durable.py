"""The steps of one run of one body: what earlier runs have left is handed back, the next one is run and recorded."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn

from celery.exceptions import Ignore, Reject, Retry, SoftTimeLimitExceeded
from kombu.utils.json import dumps, loads

from ordering import steps
from ordering.decide import BACKOFF_CAP, Asleep, Ended, Failed, Succeeded
from ordering.errors import Invalid
from ordering.items import FARTHEST
from ordering.model import Claimed, StepKind
from ordering.steps import Step
from ordering.text import RESULT_LIMIT, storable, visible
from workers import body, forked
from workers.session import PoolSession

NAME_LIMIT = 200
MOST_RETRIES = 1000


class Over(BaseException):
    """The body ends at this step. Not an Exception, so that a body's own `except Exception` lets it pass."""


class Unstorable(Exception):
    """A result that cannot be stored; the message says why."""


@dataclass(frozen=True)
class Retries:
    """How often a step that raised is repeated, after which delay in seconds, and by what that grows each time."""

    retries: int
    delay: float | timedelta
    backoff: float

    def checked(self) -> Retries:
        """Itself, with `delay` in seconds. Raises Invalid naming the field."""
        if type(self.retries) is not int or not 0 <= self.retries <= MOST_RETRIES:
            raise Invalid("retries", f"{self.retries!r} is not a whole number from 0 to {MOST_RETRIES}.")
        delay = self.delay.total_seconds() if isinstance(self.delay, timedelta) else self.delay
        if not _is_number(delay) or not 0 <= delay <= FARTHEST.total_seconds():
            raise Invalid("delay", f"{self.delay!r} is not a number of seconds from 0 to ten years.")
        if not _is_number(self.backoff) or not 1 <= self.backoff <= 1000:
            raise Invalid("backoff", f"{self.backoff!r} is not a number from 1 to 1000.")
        return Retries(self.retries, delay, self.backoff)

    def after(self, failures: int) -> timedelta | None:
        """How long to wait after that many failures; None when the retries are used up, which grants the next try fresh ones."""
        past = (failures - 1) % (self.retries + 1)
        if past == self.retries:
            return None
        assert isinstance(self.delay, (int, float))
        longest = max(self.delay, BACKOFF_CAP.total_seconds())
        # In logarithms: 1000.0 ** 1000 overflows.
        grown = past * math.log(self.backoff) + math.log(self.delay) if self.delay else -math.inf
        return timedelta(seconds=longest if grown >= math.log(longest) else math.exp(grown))


class Run:
    """The steps of one run of the body of `claimed`."""

    def __init__(self, claimed: Claimed, session: PoolSession) -> None:
        self.claimed = claimed
        self._session = session
        found: list[Step] = []
        if claimed.stepped:
            with body.undisturbed():
                found = session.transact(lambda tx, _: steps.recorded(tx, claimed.item_id))
        self._recorded = {step.number: step for step in found}
        self._names: set[str] = set()
        self._inside: str | None = None
        self._ended: Ended | None = None
        self._decided = False

    def step(self, name: str, call: Callable[[], Any], retries: Retries) -> Any:
        """The remembered result of the step, or that of `call`, which is then remembered. Raises what `call` does, and Over."""
        number, known = self._next(name, StepKind.STEP)
        if known is not None and known.done:
            if known.error is not None:
                self._end(Failed("UnstorableResult", known.error, final=True))
            return loads(known.result)
        try:
            policy = retries.checked()
        except Invalid as refused:
            self._refuse(f"Step {number} {name!r}: {refused}")
        before = known.failures if known else 0
        started = time.monotonic()
        self._inside = name
        try:
            value = forked.ends_here(call)
        except (Retry, Ignore, Reject, SoftTimeLimitExceeded):
            raise  # said of the whole body
        except Exception as error:
            took = time.monotonic() - started
            # What comes after the step has run belongs to no body: a limit that cut it short would be taken for its outcome.
            with body.undisturbed():
                reason, text = body.described(error)
                self._record(Step(number, name, StepKind.STEP, False, None, before + 1, text), took)
            delay = policy.after(before + 1)
            if delay is None:
                raise
            self._end(Failed(reason, text, retry_in=delay, counts=False))
        finally:
            self._inside = None
        took = time.monotonic() - started
        with body.undisturbed():
            stored, fresh, fault = _stored(value)
            if fault is not None:
                fault = (
                    f"Step {number} {name!r} has run, but its result cannot be stored: {fault}; let it return something storable. "
                    "It is not run again: resolve or skip this item, or add a new one."
                )
            self._record(Step(number, name, StepKind.STEP, True, stored, before, fault), took)
        if fault is not None:
            self._end(Failed("UnstorableResult", fault, final=True))
        return fresh

    def sleep(self, name: str, words: dict[str, float]) -> None:
        """Return if this sleep is over. Raises Over."""
        number, known = self._next(name, StepKind.SLEEP)
        if known is not None:
            return
        try:
            duration = timedelta(**words)
        except (TypeError, ValueError, OverflowError):
            duration = timedelta.max
        if not timedelta(0) <= duration <= FARTHEST:
            given = ", ".join(f"{unit}={value!r}" for unit, value in words.items() if value != 0)
            self._refuse(f"Sleep {number} {name!r}: {given} is not a time from 0 seconds to ten years.")
        self._end(Asleep(number, name, duration))

    def over(self, ended: Ended) -> Ended:
        """How the body ended, now that it has. Raises Stopped if its item was decided meanwhile."""
        if self._decided:
            raise body.Stopped
        if self._ended is not None:
            return self._ended
        missed = next((step for number, step in self._recorded.items() if number > len(self._names)), None)
        if isinstance(ended, Succeeded) and missed is not None:
            return _changed(f"{missed.kind} {missed.number} {missed.name!r} is recorded, but the body returned without it")
        return ended

    def _next(self, name: str, kind: StepKind) -> tuple[int, Step | None]:
        """The number of the step that is called now, and what earlier runs have left of it."""
        if self._decided:
            raise body.Stopped
        if self._ended is not None:
            raise Over  # a body that caught what ended it gets no further
        number = len(self._names) + 1
        try:
            if not isinstance(name, str) or not name:
                raise Invalid("name", f"{name!r} is no name; write a text that says what the step does.")
            visible("name", name, NAME_LIMIT)
        except Invalid as refused:
            self._refuse(f"{kind.capitalize()} {number}: {refused}")
        if self._inside is not None:
            self._refuse(f"{kind.capitalize()} {name!r} was called inside step {self._inside!r}; call them one after the other.")
        if name in self._names:
            self._refuse(f"{kind.capitalize()} {number} is called {name!r}, as an earlier one of this run; give each its own name.")
        known = self._recorded.get(number)
        if known is not None and (known.name, known.kind) != (name, kind):
            self._end(_changed(f"{known.kind} {number} is recorded as {known.name!r}, and now it is the {kind} {name!r}"))
        self._names.add(name)
        return number, known

    def _record(self, step: Step, took: float) -> None:
        self._decided = not self._session.transact(lambda tx, _: steps.record(tx, self.claimed, step, took=took))
        if self._decided:
            raise body.Stopped

    def _end(self, ended: Ended) -> NoReturn:
        self._ended = ended
        raise Over

    def _refuse(self, sentence: str) -> NoReturn:
        self._end(Failed("StepRefused", sentence, final=True))


def _changed(difference: str) -> Failed:
    return Failed(
        "DefinitionChanged",
        f"The task does not match its recorded steps: {difference}; bring the old steps back and retry, or resolve this item and add "
        "a new one.",
        final=True,
    )


def _stored(value: Any) -> tuple[str | None, Any, str | None]:
    """`value` as text, as it comes back from it, and why it cannot be stored if it cannot."""
    try:
        written = to_text(value)
        return written, loads(written), None
    except Unstorable as problem:
        return None, None, str(problem)
    except Exception as problem:
        return None, None, f"{body.described(problem)[0]}: {storable(str(problem), 500)}"


def to_text(value: Any) -> str:
    """`value` as JSON text, with kombu's forms for datetime, UUID, Decimal and bytes. Raises Unstorable, or what encoding raises."""
    try:
        written: str = dumps(value, allow_nan=False)
    except RecursionError:
        raise Unstorable("it is nested too deeply") from None
    if len(written) > RESULT_LIMIT:
        raise Unstorable(f"it has {len(written)} bytes as JSON, and at most {RESULT_LIMIT} are allowed")
    return written


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
