"""The tutorials do what they show, command by command; the Spanish ones are the same."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.app.processes import until
from tests.docs.pages import page
from tests.docs.tutorial import FENCE, Command, Shell, steps

PAGES = ["tutorial-queue.md", "tutorial-requests.md"]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.types("relevo down")
    made.close()
    for pid in running(tmp_path):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", PAGES)
def test_what_the_tutorial_shows_is_what_happens(name: str, shell: Shell) -> None:
    done = 0
    for step in steps(page(name)):
        wrong = shell.does(step)
        assert wrong is None, wrong
        done += isinstance(step, Command)
    assert done > 15
    until(lambda: len(running(shell.folder)) == 1, 60, "nothing is left to run but the reader's shell")


def running(folder: Path) -> list[int]:
    """The processes that run in a folder or below."""
    there = [(each.pid, str(each.info["cwd"])) for each in psutil.process_iter(["cwd"]) if each.pid != os.getpid()]
    return [pid for pid, cwd in there if cwd.startswith(str(folder))]


@pytest.mark.parametrize("name", PAGES)
def test_the_spanish_tutorial_has_the_same_commands(name: str) -> None:
    english, spanish = (FENCE.findall(page(each)) for each in (name, f"es/{name}"))
    assert english == spanish
    heads = [re.findall(r"^#+ ", page(each), re.M) for each in (name, f"es/{name}")]
    assert heads[0] == heads[1]
