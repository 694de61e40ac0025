"""Tasks of the cases. Each body notes its start and its end outside the product, with one write that no other can split."""

import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celery import signals

from workers import celery

NOTES = Path(os.environ["PROBE_NOTES"])


@signals.worker_init.connect
def be_impatient(**_: Any) -> None:
    """Shorten the broker's patience (Redis's visibility timeout, in seconds), whatever the product sets, before it connects."""
    if "PROBE_VISIBILITY" in os.environ:
        celery.conf.broker_transport_options["visibility_timeout"] = int(os.environ["PROBE_VISIBILITY"])


def note(task: Any, what: str) -> None:
    """Append one line for this attempt of this item; the monotonic clock is the same for all processes of a host."""
    note_of(task.request.claimed.item_id, task.request.claimed.attempt, what)


def note_of(item: int, attempt: int, what: str) -> None:
    """As `note`, for whoever knows the item."""
    line = {"item": item, "attempt": attempt, "pid": os.getpid(), "what": what, "at": time.monotonic()}
    notes = os.open(NOTES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(notes, json.dumps(line).encode() + b"\n")
    finally:
        os.close(notes)


@contextmanager
def body(task: Any) -> Iterator[None]:
    """Notes around a body; one that is killed has no end."""
    note(task, "start")
    try:
        yield
    finally:
        note(task, "end")


@celery.task(bind=True, name="probe.nap")
def nap(self: Any, seconds: float = 0.0) -> float:
    """Sleep."""
    with body(self):
        time.sleep(seconds)
    return seconds


@celery.task(bind=True, name="probe.nap_again", on_interrupt="requeue")
def nap_again(self: Any, seconds: float = 0.0) -> None:
    """Sleep; safe to repeat."""
    with body(self):
        time.sleep(seconds)


@celery.task(bind=True, name="probe.give")
def give(self: Any, value: Any = None) -> Any:
    """Return the value."""
    with body(self):
        return value


@celery.task(bind=True, name="probe.fail")
def fail(self: Any, text: str = "no luck") -> None:
    """Raise ValueError with this text."""
    with body(self):
        raise ValueError(text)


@celery.task(bind=True, name="probe.fail_until")
def fail_until(self: Any, path: str) -> None:
    """Fail as long as there is no file at `path`."""
    with body(self):
        if not Path(path).exists():
            raise FileNotFoundError(path)


@celery.task(bind=True, name="probe.wait_for")
def wait_for(self: Any, path: str) -> None:
    """Run until there is a file at `path`."""
    with body(self):
        while not Path(path).exists():
            time.sleep(0.02)


@celery.task(bind=True, name="probe.fail_first", max_retries=5)
def fail_first(self: Any, times: int, countdown: float) -> int:
    """Ask for a retry in `countdown` seconds while fewer than `times` tries were made."""
    with body(self):
        if self.request.retries < times:
            raise self.retry(countdown=countdown, exc=ConnectionError("not yet"))
        return int(self.request.retries)


@celery.task(bind=True, name="probe.die")
def die(self: Any, number: int = signal.SIGKILL) -> None:
    """End the own process by a signal."""
    with body(self):
        os.kill(os.getpid(), number)
        time.sleep(60)


@celery.task(bind=True, name="probe.leave")
def leave(self: Any, code: int = 1) -> None:
    """End the own process without a word to anybody."""
    note(self, "start")
    os._exit(code)


@celery.task(bind=True, name="probe.swell")
def swell(self: Any, megabytes: int = 512) -> None:
    """Take more memory than there is: killed as the kernel kills what it finds too large."""
    import resource

    with body(self):
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, megabytes * 2**20))
        kept = []
        try:
            while True:
                kept.append(bytearray(16 * 2**20))
        except MemoryError:
            os.kill(os.getpid(), signal.SIGKILL)


@celery.task(bind=True, name="probe.overrun", time_limit=1)
def overrun(self: Any) -> None:
    """Sleep past the hard time limit of a second."""
    with body(self):
        time.sleep(60)


@celery.task(bind=True, name="probe.hold_interpreter")
def hold_interpreter(self: Any, seconds: float) -> None:
    """Sleep in a native call that keeps the interpreter to itself: no other thread of this process runs meanwhile."""
    with body(self):
        ctypes.PyDLL(None).usleep(ctypes.c_uint(int(seconds * 1_000_000)))


@celery.task(bind=True, name="probe.fork")
def fork(self: Any, seconds: float) -> None:
    """Leave a forked child behind that lives on for some time, and sleep as long."""
    with body(self):
        if os.fork() == 0:
            try:
                note(self, "forked")
                os.setpgid(0, 0)  # so that what is told to the pool process's group does not reach it
                time.sleep(seconds)
            finally:
                os._exit(0)
        time.sleep(seconds)


@celery.task(bind=True, name="probe.raise_odd")
def raise_odd(self: Any, kind: str) -> None:
    """Raise what is hard to record; see the names in `ODD`."""
    with body(self):
        raise ODD[kind]()


class NeedsTwo(Exception):
    """Cannot be made again from its args, as unpickling would."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} and {two}")


class Unspeakable(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def _holding_lock() -> Exception:
    import threading

    return ValueError("holds a lock", threading.Lock())


def _recursion() -> Exception:
    def deeper(left: int) -> None:
        if left:
            deeper(left - 1)
        raise ValueError("deep down")

    sys.setrecursionlimit(12_000)
    try:
        deeper(10_000)
    except ValueError as error:
        return error
    raise AssertionError("unreachable")


ODD: dict[str, Any] = {
    "needs two": lambda: NeedsTwo("one", "two"),
    "holds a lock": _holding_lock,
    "unspeakable": Unspeakable,
    "20 MB": lambda: ValueError("x" * 20_000_000),
    "recursion": _recursion,
    "group": lambda: ExceptionGroup("several", [ValueError("first"), KeyError("second")]),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt,
}
