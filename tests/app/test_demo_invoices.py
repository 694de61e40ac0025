"""`make demo-invoices` as it is, shorter: it ends with 0, and at a Ctrl-C with 1; nothing is left either way."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.app.processes import ROOT, Program, until

SECONDS = 45 if os.environ.get("RELEVO_TEST_SCALE") == "1" else 4


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Where the demo has its temporary folder. Not pytest's: a socket's path is short."""
    with tempfile.TemporaryDirectory(prefix="demo-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def demo(temporary: Path) -> Iterator[Program]:
    """The demo, started."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RELEVO_", "INVOICES_"))}
    env = {**kept, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT), "INVOICES_DEMO_SECONDS": str(SECONDS), "PYTHONWARNINGS": ""}
    started = Program([sys.executable, "-P", "-m", "examples.invoices.demo"], env, ROOT)
    try:
        yield started
    finally:
        started.close()
        for each in left(temporary):
            each.kill()


def left(folder: Path) -> list[psutil.Process]:
    """The processes that have something below `folder` in their command or as their home."""
    found = []
    for each in psutil.process_iter():
        try:
            if each.status() != psutil.STATUS_ZOMBIE and str(folder) in " ".join([*each.cmdline(), each.environ().get("RELEVO_HOME", "")]):
                found.append(each)
        except psutil.Error:
            continue
    return found


@pytest.mark.timeout(300)
def test_under_faults_everything_happens_once(demo: Program, temporary: Path) -> None:
    code = demo.ends(within=280)
    told = "\n".join(demo.lines)
    assert code == 0, told
    assert "WRONG" not in told
    for fault in ("kill -9 of pool process", "flush of the broker", "kill -9 of the worker", "kill -9 of the feeder"):
        assert fault in told
    assert demo.lines[-1] == "Nothing is left running."
    until(lambda: not left(temporary), 30, "nothing is left")
    assert not list(temporary.iterdir())


@pytest.mark.timeout(120)
def test_ctrl_c_leaves_nothing_behind(demo: Program, temporary: Path) -> None:
    demo.said("kill -9 of pool process", within=60)
    assert left(temporary)
    demo.process.send_signal(signal.SIGINT)
    assert demo.ends(within=60) == 1
    assert "It has not come to its end: told to stop (SIGINT)" in demo.lines
    until(lambda: not left(temporary), 30, "nothing is left")
    assert not list(temporary.iterdir())
