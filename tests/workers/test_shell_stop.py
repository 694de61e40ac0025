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


Raising = Callable[..., threading.Thread]


@pytest.fixture
def raising() -> Iterator[Raising]:
    """Called with moments and errors in turn: a thread that, at each of these moments, has the error raised in the main thread."""
    pending: list[BaseException] = []

    def handler(number: int, frame: FrameType | None) -> None:
        if pending:
            raise pending.pop()

    def start(*turns: tuple[Callable[[], object], BaseException]) -> threading.Thread:
        def work() -> None:
            for moment, error in turns:
                assert until(moment)
                pending.append(error)
                while pending:  # a signal that comes just before a system call is seen only when that returns
                    os.kill(os.getpid(), signal.SIGUSR1)
                    time.sleep(0.2)

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    before = signal.signal(signal.SIGUSR1, handler)
    yield start
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("error", [TimeIsUp(), SystemExit(1), KeyboardInterrupt()])
def test_exception_ends_the_tree_before_it_is_let_through(tmp_path: Path, raising: Raising, error: BaseException) -> None:
    told: list[str] = []
    script = "setsid sleep 100 & echo $$ $! > pids.new; trap 'echo asked; exit' TERM; mv pids.new pids; while :; do sleep 0.02; done"
    thread = raising(((tmp_path / "pids").exists, error))
    with pytest.raises(type(error)):
        run(["sh", "-c", script], cwd=str(tmp_path), on_change=lambda head, *_: told.append(head))
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert [pid for pid in pids if alive(pid)] == []
    assert "asked\n" in told[-1]
    thread.join()


DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: open("asked", "w").close())
with open("pid.new", "w") as file:
    file.write(str(os.getpid()))
os.rename("pid.new", "pid")
for _ in range(5000):
    time.sleep(0.02)
"""


def test_who_does_not_listen_is_killed_after_the_grace(tmp_path: Path, raising: Raising) -> None:
    thread = raising(((tmp_path / "pid").exists, TimeIsUp()))
    begun = time.monotonic()
    with pytest.raises(TimeIsUp), Stopwatch() as watch:
        run(python(DEAF), cwd=str(tmp_path), grace=0.5)
    assert time.monotonic() - begun > 0.5
    assert watch.seconds < 10, "it would go on for 100 s"
    assert not alive(int((tmp_path / "pid").read_text()))
    thread.join()


def test_second_exception_does_not_wait_for_the_grace(tmp_path: Path, raising: Raising) -> None:
    thread = raising(((tmp_path / "pid").exists, TimeIsUp()), ((tmp_path / "asked").exists, SystemExit(1)))
    with pytest.raises(SystemExit):
        run(python(DEAF), cwd=str(tmp_path), grace=20)
    assert not alive(int((tmp_path / "pid").read_text()))
    thread.join()
