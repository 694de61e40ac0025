"""An exception out of a signal handler (a time limit, a shutdown, a cancel) ends the command's whole tree before it is let through."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from tests.patience import Stopwatch
from tests.workers.commands import alive, python, until
from workers.shell import run


class TimeIsUp(Exception):
    """As a soft time limit comes: out of a signal handler, in the main thread."""


@pytest.fixture
def raise_on_usr1() -> Iterator[Callable[[BaseException], None]]:
    errors: list[BaseException] = []

    def handler(number: int, frame: FrameType | None) -> None:
        raise errors.pop(0)

    before = signal.signal(signal.SIGUSR1, handler)
    yield errors.append
    signal.signal(signal.SIGUSR1, before)


def when(true: Callable[[], object], *, times: int = 1) -> threading.Thread:
    def work() -> None:
        assert until(true)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.3)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("error", [TimeIsUp(), SystemExit(1), KeyboardInterrupt()])
def test_exception_ends_the_tree_before_it_is_let_through(
    tmp_path: Path, raise_on_usr1: Callable[[BaseException], None], error: BaseException
) -> None:
    raise_on_usr1(error)
    told: list[str] = []
    script = "setsid sleep 100 & echo $$ $! > pids.new; trap 'echo asked; exit' TERM; mv pids.new pids; while :; do sleep 0.02; done"
    thread = when((tmp_path / "pids").exists)
    with pytest.raises(type(error)):
        run(["sh", "-c", script], cwd=str(tmp_path), on_change=lambda head, *_: told.append(head))
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert [pid for pid in pids if alive(pid)] == []
    assert "asked\n" in told[-1]
    thread.join()


DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open("pid.new", "w") as file:
    file.write(str(os.getpid()))
os.rename("pid.new", "pid")
time.sleep(100)
"""


def test_who_does_not_listen_is_killed_after_the_grace(tmp_path: Path, raise_on_usr1: Callable[[BaseException], None]) -> None:
    raise_on_usr1(TimeIsUp())
    thread = when((tmp_path / "pid").exists)
    begun = time.monotonic()
    with pytest.raises(TimeIsUp), Stopwatch() as watch:
        run(python(DEAF), cwd=str(tmp_path), grace=0.5)
    assert time.monotonic() - begun > 0.5
    assert watch.seconds < 10, "it would go on for 100 s"
    assert not alive(int((tmp_path / "pid").read_text()))
    thread.join()


def test_second_exception_does_not_wait_for_the_grace(tmp_path: Path, raise_on_usr1: Callable[[BaseException], None]) -> None:
    raise_on_usr1(TimeIsUp())
    raise_on_usr1(SystemExit(1))
    thread = when((tmp_path / "pid").exists, times=2)
    with pytest.raises(SystemExit):
        run(python(DEAF), cwd=str(tmp_path), grace=20)
    assert not alive(int((tmp_path / "pid").read_text()))
    thread.join()
