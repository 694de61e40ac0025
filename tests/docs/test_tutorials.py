"""The tutorials do what they show, command by command; the Spanish ones are the same."""

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.docs.pages import page
from tests.docs.tutorial import FENCE, Command, Shell, steps

PAGES = ["tutorial-queue.md", "tutorial-requests.md"]


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.types("relevo down")
    made.close()
    for process in psutil.process_iter(["cwd"]):
        if process.info["cwd"] and process.info["cwd"].startswith(str(tmp_path)):
            os.kill(process.pid, signal.SIGKILL)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", PAGES)
def test_what_the_tutorial_shows_is_what_happens(name: str, shell: Shell) -> None:
    done = 0
    for step in steps(page(name)):
        wrong = shell.does(step)
        assert wrong is None, wrong
        done += isinstance(step, Command)
    assert done > 15
    running = [
        each.info["cmdline"]
        for each in psutil.process_iter(["cmdline", "cwd"])
        if each.pid != os.getpid() and str(each.info["cwd"]).startswith(str(shell.folder))
    ]
    assert len(running) <= 1, "the reader is left with something that runs"  # the shell itself


@pytest.mark.parametrize("name", PAGES)
def test_the_spanish_tutorial_has_the_same_commands(name: str) -> None:
    english, spanish = (FENCE.findall(page(each)) for each in (name, f"es/{name}"))
    assert english == spanish
    heads = [re.findall(r"^#+ ", page(each), re.M) for each in (name, f"es/{name}")]
    assert heads[0] == heads[1]
