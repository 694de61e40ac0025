"""Volatile work, with real threads: bounded, counted, awaited at shutdown, and the parent's alone after a fork."""

from __future__ import annotations

import contextvars
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import REGISTRY

from tests.patience import Stopwatch
from tests.workers.worker_process import ROOT, until
from workers import volatile, volatile_shutdown, volatile_work


def counted(outcome: str) -> float:
    value = REGISTRY.get_sample_value("relevo_volatile_total", {"outcome": outcome})
    assert value is not None, "every outcome is there from the start"
    return value


@pytest.fixture
def since() -> Iterator[Callable[[str], float]]:
    """How many calls ended so since the test began."""
    volatile_shutdown(0)
    before = {outcome: counted(outcome) for outcome in volatile_work.OUTCOMES}
    yield lambda outcome: counted(outcome) - before[outcome]
    volatile_shutdown(0)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What holds up bodies until it is set, at the latest when the test ends."""
    event = threading.Event()
    yield event
    event.set()


def test_it_returns_at_once_and_the_call_is_made(since: Callable[[str], float], gate: threading.Event) -> None:
    seen: list[tuple[object, ...]] = []

    def note(*args: object, **kwargs: object) -> None:
        gate.wait(60)
        seen.append((args, kwargs, threading.current_thread() is threading.main_thread()))

    assert volatile(note, 1, "two", name="three")
    assert not seen
    gate.set()
    until(lambda: since("done") == 1, 20, "the call is counted")
    assert seen == [((1, "two"), {"name": "three"}, False)]


def test_no_more_than_its_threads_run_at_once(since: Callable[[str], float], gate: threading.Event) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def body() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        gate.wait(60)
        with lock:
            running -= 1

    for _ in range(3 * volatile_work.THREADS):
        assert volatile(body)
    until(lambda: running == volatile_work.THREADS, 20, "as many run as there are threads")
    gate.set()
    until(lambda: since("done") == 3 * volatile_work.THREADS, 20, "all are done")
    assert most == volatile_work.THREADS


def test_what_raises_is_logged_and_counted_and_the_next_call_runs(since: Callable[[str], float], caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise SystemExit("the cache is away")

    for _ in range(2 * volatile_work.THREADS):
        assert volatile(broken)
    until(lambda: since("failed") == 2 * volatile_work.THREADS, 20, "each failure is counted")
    assert "the cache is away" in caplog.text
    assert "broken" in caplog.text
    assert volatile(int)
    until(lambda: since("done") == 1, 20, "the threads live")


def test_beyond_the_queue_calls_are_refused_counted_and_told_once(
    since: Callable[[str], float], gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(volatile_work.THREADS):
        assert volatile(gate.wait, 60)
    pool = volatile_work._pool
    assert pool is not None
    until(lambda: len(pool.running) == volatile_work.THREADS, 20, "every thread is taken")
    for _ in range(volatile_work.QUEUE):
        assert volatile(int)
    for _ in range(3):
        assert not volatile(int)
    assert since("refused") == 3
    assert [record.message for record in caplog.records if "refused" in record.message] == [
        f"Volatile work was refused: int ({volatile_work.QUEUE} calls wait already)"
    ]
    gate.set()
    until(lambda: since("done") == volatile_work.QUEUE + volatile_work.THREADS, 30, "what was taken is done")
    assert volatile(int), "there is room again"


def test_shutdown_waits_for_what_was_taken(since: Callable[[str], float]) -> None:
    for _ in range(2 * volatile_work.THREADS):
        assert volatile(time.sleep, 0.05)
    assert volatile_shutdown(60) == 0
    assert since("done") == 2 * volatile_work.THREADS
    assert volatile(int), "a call after it begins anew"
    assert volatile_shutdown(60) == 0


def test_shutdown_gives_up_what_does_not_end(
    since: Callable[[str], float], gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(volatile_work.THREADS):
        assert volatile(gate.wait, 60)
    assert volatile(int)
    began = time.monotonic()
    with Stopwatch() as watch:
        assert volatile_shutdown(0.2) == volatile_work.THREADS + 1
    assert time.monotonic() - began >= 0.2
    assert watch.seconds < 5
    assert since("abandoned") == volatile_work.THREADS + 1
    assert "was abandoned at shutdown: int" in caplog.text
    gate.set()
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("volatile-")]
    for thread in threads:
        thread.join(30)
    assert since("done") == 0, "counted once, as abandoned"


def test_while_it_shuts_down_calls_are_refused(since: Callable[[str], float], gate: threading.Event) -> None:
    assert volatile(gate.wait, 60)
    pool = volatile_work._pool
    assert pool is not None
    ender = threading.Thread(target=volatile_shutdown, args=(60,))
    ender.start()
    until(lambda: pool.ending, 20, "the shutdown has begun")
    assert not volatile(int)
    assert since("refused") == 1
    gate.set()
    ender.join(30)
    assert not ender.is_alive()


def test_the_callers_context_variables_are_seen(since: Callable[[str], float]) -> None:
    request = contextvars.ContextVar("request", default="none")
    seen: list[str] = []
    request.set("request 7")
    assert volatile(lambda: seen.append(request.get()))
    until(lambda: since("done") == 1, 20, "the call is made")
    assert seen == ["request 7"]


def test_coroutines_are_refused_with_a_sentence(since: Callable[[str], float], caplog: pytest.LogCaptureFixture) -> None:
    async def later() -> None:
        raise AssertionError("nobody awaits it")

    with pytest.raises(TypeError, match=r"asyncio\.create_task"):
        volatile(later)
    with pytest.raises(TypeError, match="no plain function"):
        volatile("later")  # type: ignore[arg-type]
    assert volatile(lambda: later())
    until(lambda: since("failed") == 1, 20, "a coroutine that comes out is a failure")
    assert "returned a coroutine" in caplog.text


def child_of_fork(body: Callable[[], bool]) -> int:
    """The exit code of a forked child that runs `body`: 0 if it is true."""
    pid = os.fork()
    if pid == 0:
        code = 1
        signal.alarm(90)  # a lock that nobody releases ends the child, not the test's patience
        try:
            code = 0 if body() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_begins_with_nothing(since: Callable[[str], float], gate: threading.Event) -> None:
    seen: list[int] = []

    def note(number: int) -> None:
        gate.wait(60)
        seen.append(number)

    assert volatile(gate.wait, 60)
    for number in range(2 * volatile_work.THREADS):
        assert volatile(note, number)

    def works_in_the_child() -> bool:
        zero = all(counted(outcome) == 0 for outcome in volatile_work.OUTCOMES)
        own: list[int] = []
        taken = volatile(own.append, 1)
        return zero and taken and volatile_shutdown(30) == 0 and own == [1] and not seen and counted("done") == 1

    assert child_of_fork(works_in_the_child) == 0
    gate.set()
    assert volatile_shutdown(60) == 0
    assert sorted(seen) == list(range(2 * volatile_work.THREADS)), "the parent's calls stayed the parent's"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_in_the_midst_of_calls_leaves_no_held_lock(since: Callable[[str], float]) -> None:
    over = threading.Event()

    def keep_calling() -> None:
        while not over.is_set():
            volatile(int)

    callers = [threading.Thread(target=keep_calling) for _ in range(3)]
    logging.getLogger("workers.volatile_work").disabled = True  # its own lock is logging's business
    for caller in callers:
        caller.start()
    try:
        for _ in range(20):
            assert child_of_fork(lambda: volatile(int) and volatile_shutdown(30) == 0) == 0
    finally:
        over.set()
        for caller in callers:
            caller.join(30)
        logging.getLogger("workers.volatile_work").disabled = False
    assert volatile_shutdown(60) == 0


def program(code: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=False)


def test_it_loads_no_celery_and_its_name_is_the_function() -> None:
    ended = program("""
import sys
import workers.volatile_work
from workers import volatile, volatile_shutdown
assert callable(volatile) and callable(volatile_shutdown)
loaded = {name.split(".")[0] for name in sys.modules}
print(sorted(loaded & {"celery", "kombu", "billiard", "sqlalchemy", "app"}))
""")
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


def test_a_process_that_ends_waits_for_it() -> None:
    ended = program("""
import time
from workers import volatile
volatile(lambda: (time.sleep(0.5), print("written after the end of the program", flush=True)))
""")
    assert (ended.stdout, ended.returncode) == ("written after the end of the program\n", 0), ended.stderr


def test_a_process_that_ends_does_not_wait_for_ever() -> None:
    ended = program("""
import time, workers.volatile_work as work
work.volatile_shutdown.__defaults__ = (0.5,)
work.volatile(time.sleep, 1000)
""")
    assert ended.returncode == 0
    assert "abandoned at shutdown: sleep" in ended.stderr
