"""Tasks that use Celery's own words, and the platform's few."""

import gc
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from celery.exceptions import SoftTimeLimitExceeded

from tests.cases.probe_tasks import body
from workers import celery
from workers.body import Done, Postpone


@celery.task(bind=True, name="heart.auto", autoretry_for=(ConnectionError,), retry_backoff=1, retry_jitter=False, max_retries=2)
def auto(self: Any, failures: int) -> int:
    with body(self):
        if self.request.retries < failures:
            raise ConnectionError(f"try {self.request.retries}")
        return int(self.request.retries)


@celery.task(bind=True, name="heart.changed")
def changed(self: Any, left: int) -> str:
    with body(self):
        if left:
            raise self.retry(args=[left - 1], countdown=0)
        return "done"


@celery.task(bind=True, name="heart.soft", soft_time_limit=1, time_limit=30)
def soft(self: Any) -> None:
    with body(self):
        time.sleep(20)


@celery.task(bind=True, name="heart.soft_kind", soft_time_limit=1, time_limit=30)
def soft_kind(self: Any) -> str:
    with body(self):
        try:
            time.sleep(20)
        except SoftTimeLimitExceeded:
            return "tidied up"
        return "not reached"


@celery.task(bind=True, name="heart.limited", time_limit=3)
def limited(self: Any) -> None:
    with body(self):
        time.sleep(0.2)


@celery.task(bind=True, name="heart.limited_softly", soft_time_limit=3, time_limit=60)
def limited_softly(self: Any) -> None:
    with body(self):
        time.sleep(0.2)


def _check(verdict: str) -> Any:
    match verdict:
        case "go":
            return None
        case "done":
            return Done("somebody did it")
        case "later":
            return Postpone(datetime.now(UTC) + timedelta(hours=1), "not open yet")
        case "naive":
            return Postpone(datetime.now() + timedelta(hours=1))
        case "raise":
            raise LookupError("cannot tell")
        case _:
            return "nonsense"


@celery.task(bind=True, name="heart.checked", precheck=_check)
def checked(self: Any, verdict: str) -> str:
    with body(self):
        return verdict


@celery.task(bind=True, name="heart.typed", plan="typed")
def typed(self: Any, when: datetime, price: Decimal) -> Any:
    with body(self):
        return {"when": when + timedelta(days=1), "price": price * 2, "kinds": [type(when).__name__, type(price).__name__]}


@celery.task(bind=True, name="heart.unstorable")
def unstorable(self: Any) -> Any:
    with body(self):
        return object()


@celery.task(bind=True, name="heart.replaces")
def replaces(self: Any) -> None:
    with body(self):
        self.replace(soft.s())


@celery.task(bind=True, name="heart.stubborn")
def stubborn(self: Any) -> str:
    with body(self):
        try:
            time.sleep(60)
        except BaseException:  # what a body must not do, and some do
            return "as if nothing had been"
        return "not reached"


@celery.task(bind=True, name="heart.patient")
def patient(self: Any, times: int) -> int:
    with body(self):
        if self.request.retries < times:
            raise self.retry(countdown=0, max_retries=10)
        return int(self.request.retries)


@celery.task(bind=True, name="heart.hears", on=["heart.happened", "heart.also"], plan="hearing")
def hears(self: Any, data: dict[str, Any]) -> dict[str, str]:
    with body(self):
        return {name: f"{type(value).__name__} {value}" for name, value in data.items()}


@celery.task(bind=True, name="heart.hears_too", on="heart.happened")
def hears_too(self: Any, data: Any) -> Any:
    with body(self):
        return data


def _child(way: str, step: Any) -> Any:
    """What a forked child does that nobody told to end by os._exit."""
    match way:
        case "returns":
            return "the child's result"
        case "exits":
            sys.exit(3)
        case "raises":
            raise ValueError("the child's own")
        case "steps":
            return step("the child's", int)
        case "waits":
            time.sleep(60)
    raise AssertionError(way)


@celery.task(bind=True, name="heart.forks")
def forks(self: Any, way: str, in_step: bool = False) -> int:
    def fork() -> Any:
        child = os.fork()
        if child == 0:
            return _child(way, self.step)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    code: int = self.step("fork", fork) if in_step else fork()
    return code


@celery.task(bind=True, name="heart.shared")
def shared(self: Any) -> int:
    with body(self):
        return gc.get_freeze_count()


@celery.task(bind=True, name="heart.infinite")
def infinite(self: Any) -> Any:
    with body(self):
        return {"ratio": float("nan")}


@celery.task(bind=True, name="heart.retries_in")
def retries_in(self: Any, countdown: Any) -> None:
    with body(self):
        raise self.retry(countdown=float(countdown) if countdown == "nan" else countdown, max_retries=1)
