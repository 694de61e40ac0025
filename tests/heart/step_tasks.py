"""Tasks with steps. `script` does what its argument says, so that a test can change the definition by an edit of the item."""

import contextlib
import signal
import time
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.cases.probe_tasks import body, note
from workers import celery

TYPED: dict[str, Any] = {
    "datetime": datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "date": date(2030, 1, 2),
    "uuid": UUID(int=7),
    "bytes": b"\xff\x00",
    "decimal": Decimal("1.10"),
    "float": 1e22,
    "int": 10**30,
    "order": {"b": 1, "a": [None, True]},
    "text": "half \ud800 a pair, \x00 and 👪",
    "tuple": (1, 2),
}


def effect(task: Any, name: str, value: Any = None) -> Any:
    """Note that the step runs, then do what `value` says."""
    note(task, name)
    match value:
        case "typed":
            return TYPED
        case {"fails": times}:
            # Only as often: how often it has been called is on record outside the product.
            path = Path(f"{task.request.claimed.item_id}-{name}.count")
            count = int(path.read_text()) if path.exists() else 0
            path.write_text(str(count + 1))
            if count < times:
                raise ConnectionError(f"no {count + 1}")
            return count
        case {"unstorable": kind}:
            return _unstorable(kind)
        case {"raises": "wild"}:
            raise Wild
        case "limited":
            return Limited(a=1)
        case "nested":
            return task.step("inner", effect, task, "inner")
        case "exit":
            raise SystemExit(3)
        case _:
            return value


class Wild(Exception):
    """Neither str() nor pickle bear it."""

    def __init__(self) -> None:
        super().__init__(lambda: None)

    def __str__(self) -> str:
        raise LookupError("no text")


class Limited(dict[str, int]):
    """The soft time limit comes while it is made into text."""

    def items(self) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return super().items()


def _unstorable(kind: str) -> Any:
    match kind:
        case "generator":
            return (number for number in range(3))
        case "file":
            return open("/dev/null")
        case "lambda":
            return lambda: None
        case "large":
            return "x" * 50_000_000
        case "set":
            return {1, 2}
        case "nan":
            return float("nan")
        case "disguised":
            return {"__type__": "nonsense", "__value__": 1}
        case "deep":
            deep: list[Any] = []
            for _ in range(100_000):
                deep = [deep]
            return deep
    raise AssertionError(kind)


@celery.task(bind=True, name="heart.script")
def script(self: Any, lines: list[list[Any]]) -> Any:
    """Each line is step NAME [VALUE [OPTIONS]], sleep NAME OPTIONS, fail, careless NAME, or key NAME."""
    given: list[Any] = []
    with body(self):
        for verb, *rest in lines:
            match verb, rest:
                case "step", [name]:
                    given.append(self.step(name, effect, self, name))
                case "step", [name, value]:
                    given.append(self.step(name, effect, self, name, value))
                case "step", [name, value, options]:
                    given.append(self.step(name, effect, self, name, value, **options))
                case "sleep", [name, options]:
                    self.sleep(name, **options)
                case "careless", [name]:
                    with contextlib.suppress(BaseException):
                        self.sleep(name, hours=1)
                    with contextlib.suppress(Exception):
                        self.step("after it", effect, self, "after it")
                case "caught", [name, value]:
                    with contextlib.suppress(Exception):
                        self.step(name, effect, self, name, value)
                case "key", [name]:
                    given.append(self.idempotency_key(name))
                case "fail", _:
                    raise ValueError("as told")
                case "nap", [seconds]:
                    time.sleep(seconds)
    return given


@celery.task(bind=True, name="heart.typed_steps")
def typed_steps(self: Any) -> Any:
    """Whether a step's result is the same fresh and remembered, by type and by value."""
    with body(self):
        found = self.step("typed", effect, self, "typed", "typed")
        shown = repr(found)
        self.step("fresh", effect, self, "fresh", shown)
        if self.request.retries == 0:
            raise self.retry(countdown=0)
        return {"shown": shown, "fresh": self.step("again", lambda: shown) == shown}


@celery.task(bind=True, name="heart.keyword")
def keyword(self: Any, *, days: float) -> Any:
    """Keyword arguments that are not the step's own go to its function."""
    with body(self):
        made = self.step("made", dict, idempotency_key=self.idempotency_key("made"), until=timedelta(days=days).total_seconds())
        return made["until"]


@celery.task(bind=True, name="heart.many_steps", soft_time_limit=1, time_limit=20)
def many_steps(self: Any) -> int:
    """Steps and nothing else, so that the soft limit comes in the middle of a write."""
    with body(self):
        for number in range(100_000):
            self.step(f"step {number}", int)
        return 0
