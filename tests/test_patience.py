"""A standstill of the machine counts for nobody, and what does not come is still missed in time."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import Stopwatch, wait_until

ROOT = Path(__file__).parents[1]
STOPPED = """
import sys, time
from tests.patience import Stopwatch, wait_until
with Stopwatch() as watch:
    print("begun", flush=True)
    wait_until(lambda: watch.stood_still > 1, 60, "the standstill")
print(watch.seconds, flush=True)
"""


def test_the_time_in_which_a_process_stands_still_is_not_counted() -> None:
    command = [sys.executable, "-c", STOPPED]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True) as measured:
        assert measured.stdout is not None
        assert measured.stdout.readline() == "begun\n"
        began = time.monotonic()
        measured.send_signal(signal.SIGSTOP)
        time.sleep(2)
        measured.send_signal(signal.SIGCONT)
        counted = float(measured.stdout.readline())
        lasted = time.monotonic() - began
    assert measured.returncode == 0
    assert counted < lasted - 1


def test_what_does_not_come_is_missed_in_time() -> None:
    with Stopwatch() as watch, pytest.raises(AssertionError, match=r"^not within 0\.2 s: the miracle$"):
        wait_until(lambda: False, 0.2, "the miracle")
    assert 0.1 < watch.seconds < 5
    assert wait_until(lambda: 7, 0.2, "what is there") == 7
