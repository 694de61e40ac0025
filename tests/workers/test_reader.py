"""The reader of a pipe: nothing that came before the end stays untold."""

import os
import threading

import pytest

from tests.patience import Stopwatch
from tests.workers.commands import until
from workers.output import Output
from workers.reader import Reader


def test_what_came_while_storing_is_told_at_the_end() -> None:
    reading, writing = os.pipe()
    told: list[str] = []
    go = threading.Event()

    def on_change(head: str, tail: str, dropped: int) -> None:
        told.append(head)
        go.wait(60)

    reader = Reader(reading, Output(), on_change)
    reader.start()
    os.write(writing, b"early")
    assert until(lambda: told)
    os.write(writing, b", late")
    os.close(writing)
    assert until(lambda: "output reader" not in [thread.name for thread in threading.enumerate()])
    go.set()
    reader.finish()
    assert told == ["early", "early, late"]


def test_end_is_not_waited_for_where_somebody_else_holds_the_pipe_open() -> None:
    reading, writing = os.pipe()
    output = Output()
    reader = Reader(reading, output, None)
    reader.start()
    os.write(writing, b"all of it" * 1000)
    with Stopwatch() as watch:
        reader.finish()
    assert watch.seconds < 5
    os.close(writing)
    assert output.text() == "all of it" * 1000


def test_one_that_never_started_gives_its_pipe_back() -> None:
    reading, writing = os.pipe()
    Reader(reading, Output(), None).finish()
    with pytest.raises(BrokenPipeError):  # nobody has its other end open
        os.write(writing, b"x")
    os.close(writing)
