"""The supervisor with real processes: order, restarts, the end in every way, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import pytest

from tests.app.processes import ROOT, Program, alive, program, until

POLITE = "signal.signal(15, lambda *_: (say('got TERM'), sys.exit(0)))\nsay(f'pid {os.getpid()}')\nready()\nwait()\n"
DEAF = "signal.signal(15, lambda *_: say('got TERM'))\nsay(f'pid {os.getpid()}')\nready()\nwait()\n"
WITH_CHILD = "child = subprocess.Popen(['sleep', '1000'])\nsay(f'child {child.pid}')\n"


@contextmanager
def supervised(*services: tuple[str, str], within: float = 30, together: bool = False, start: float = 60) -> Iterator[Program]:
    bounds = [60.0] * (len(services) - 1) + [start]  # the last one's is the test's
    described = zip(services, bounds, strict=True)
    told = json.dumps([{"name": name, "code": code, "within": within, "start": bound} for (name, code), bound in described])
    with program("-m", "tests.app.supervised", told, *(["together"] if together else [])) as started:
        yield started


def pid(supervisor: Program, service: str, times: int = 1) -> int:
    return int(supervisor.said(rf" {service} +\| pid (\d+)", times)[-1][1])


def test_each_line_is_in_the_log_with_time_and_name() -> None:
    code = "say('one\\n\\n  two')\n"
    code += "os.write(1, b'\\xff ' + b'x' * 100_000 + b'\\nthe end without a line end')\nready()\nos.close(1)\nos.close(2)\nwait()"
    with supervised(("talker", code)) as supervisor:
        supervisor.said("all started")
        supervisor.said(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ talker   \| one$")
        supervisor.said(r"talker   \|   two$")
        supervisor.said(r"talker   \| the end without a line end$")
        assert sum(line.count("x") for line in supervisor.lines if " talker " in line) == 100_000
        supervisor.process.terminate()
        assert supervisor.ends(60) == 0


def test_services_start_in_order_and_stop_in_the_reverse_order() -> None:
    with supervised(("first", POLITE), ("second", POLITE), ("third", POLITE)) as supervisor:
        supervisor.said("all started")
        supervisor.process.terminate()
        assert supervisor.ends(60) == 0
        events = [line.split("Z ", 1)[1] for line in supervisor.lines]
        started = [event.split()[2] for event in events if "is ready" in event]
        stopped = [event.split()[0] for event in events if "got TERM" in event]
        assert (started, stopped) == (["first", "second", "third"], ["third", "second", "first"])


def test_services_that_were_started_together_are_asked_to_stop_together(tmp_path: Path) -> None:
    go = tmp_path / "go"
    busy = f"""
def stop(*_):
    say('got TERM')
    while not os.path.exists({str(go)!r}):
        time.sleep(0.02)
    say('done')
    sys.exit(0)
signal.signal(15, stop)
ready()
wait()
"""
    with supervised(("first", busy), ("second", busy), ("deaf", DEAF), within=8, together=True) as supervisor:
        supervisor.said("all started")
        supervisor.process.terminate()
        supervisor.said("got TERM", times=3)
        go.touch()
        assert supervisor.ends(60) == 1
        told = [line.split("Z ", 1)[1].split() for line in supervisor.lines if "got TERM" in line or line.endswith("| done")]
        assert {name for name, *_ in told[:3]} == {"first", "second", "deaf"}
        assert [words[-1] for words in told] == ["TERM"] * 3 + ["done"] * 2
        supervisor.said("deaf has not stopped in time and is killed")


def test_what_dies_is_started_again_after_a_growing_pause() -> None:
    with supervised(("mortal", "ready()\nsay('alive')\nsys.exit(7)"), ("other", POLITE)) as supervisor:
        pauses = [float(match[1]) for match in supervisor.said(r"mortal ended \(exit code 7\).*again in ([\d.]+) s", times=4)]
        assert pauses[:4] == [0.2, 0.4, 0.8, 1.6]
        assert len(supervisor.said(r"other .* pid")) == 1
        supervisor.process.terminate()
        assert supervisor.ends(60) == 0


def test_a_killed_leader_takes_its_session_along_before_the_next_start() -> None:
    with supervised(("parent", WITH_CHILD + POLITE)) as supervisor:
        supervisor.said("all started")  # before that, a death is a start that fails
        child = int(supervisor.said(r"child (\d+)")[0][1])
        os.kill(pid(supervisor, "parent"), signal.SIGKILL)
        supervisor.said(r"parent ended \(signal 9\)")
        assert not alive(child)
        pid(supervisor, "parent", times=2)
        supervisor.process.terminate()
        assert supervisor.ends(60) == 0


@pytest.mark.parametrize(
    ("code", "within", "sentence"),
    [
        ("say('the reason')\nsys.exit(4)", 60, r"The bad ended while it was starting \(exit code 4\); its last words: the reason"),
        ("os.kill(os.getpid(), 9)", 60, r"The bad ended while it was starting \(signal 9\); it said nothing"),
        ("say('thinking')\nwait()", 10, r"The bad was not ready within 10 s; its last words: thinking"),
        ("os.close(int(os.environ['RELEVO_READY_FD']))\nwait()", 1, r"The bad was not ready within 1 s"),
    ],
)
def test_a_start_that_fails_is_one_sentence_and_leaves_nothing(code: str, within: float, sentence: str) -> None:
    with supervised(("good", POLITE), ("bad", code), start=within) as supervisor:
        good = pid(supervisor, "good")
        supervisor.said("failed: " + sentence)
        assert supervisor.ends(60) == 3
        assert not alive(good)


def test_a_service_that_does_not_stop_is_killed_with_its_children_at_the_end_of_its_bound() -> None:
    with supervised(("deaf", WITH_CHILD + DEAF), within=1) as supervisor:
        supervisor.said("all started")
        child, deaf = int(supervisor.said(r"child (\d+)")[0][1]), pid(supervisor, "deaf")
        began = monotonic()
        supervisor.process.terminate()
        assert supervisor.ends(30) == 1
        assert monotonic() - began > 0.9
        assert not alive(child)
        assert not alive(deaf)
        supervisor.said("deaf has not stopped in time and is killed")


def test_a_second_signal_shortens_the_wait_and_still_leaves_nothing() -> None:
    with supervised(("first", POLITE), ("deaf", WITH_CHILD + DEAF), within=300) as supervisor:
        supervisor.said("all started")
        child = int(supervisor.said(r"child (\d+)")[0][1])
        asked = monotonic()
        supervisor.process.terminate()
        supervisor.said(r"deaf is asked to stop$")
        # A second one within half a second is the same wish, passed on by a wrapper.
        supervisor.process.terminate()
        began = monotonic()
        until(lambda: monotonic() - began > 1, 30, "a second passes")
        assert began - asked > 0.4 or not [line for line in supervisor.lines if "at once" in line]
        supervisor.process.send_signal(signal.SIGINT)
        assert supervisor.ends(60) == 1
        supervisor.said(r"deaf is asked to stop at once")
        supervisor.said(r"first +\| got TERM")
        assert not alive(child)


def test_a_third_signal_kills() -> None:
    with supervised(("deaf", DEAF), within=300) as supervisor:
        supervisor.said("all started")
        for times in range(3):
            if times:
                began = monotonic()
                until(lambda began=began: monotonic() - began > 0.6, 30, "the signals are apart")  # type: ignore[misc]
            supervisor.process.terminate()
        assert supervisor.ends(60) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_the_whole_group_reaches_services_once_and_in_order(number: signal.Signals) -> None:
    with supervised(("first", POLITE), ("second", POLITE)) as supervisor:
        supervisor.said("all started")
        os.killpg(supervisor.pid, number)
        assert supervisor.ends(60) == 0
        assert [line.split()[1] for line in supervisor.lines if "got TERM" in line] == ["second", "first"]


def test_a_signal_during_the_start_stops_what_has_started() -> None:
    with supervised(("first", POLITE), ("slow", "say('thinking')\nwait()")) as supervisor:
        supervisor.said("thinking")
        supervisor.process.terminate()
        assert supervisor.ends(60) == 0
        supervisor.said("stopped early")
        assert not alive(pid(supervisor, "first"))


def test_kill_9_of_the_supervisor_ends_the_services() -> None:
    with supervised(("first", POLITE), ("deaf", DEAF)) as supervisor:
        supervisor.said("all started")
        pids = [pid(supervisor, "first"), pid(supervisor, "deaf")]
        assert all(alive(each) for each in pids)
        supervisor.process.kill()
        until(lambda: not any(alive(each) for each in pids), 30, "the services end")


def test_a_reader_that_goes_away_does_not_stop_the_services() -> None:
    told = json.dumps(
        [{"name": "talker", "code": "ready()\nfor n in range(10**9):\n    say(n)\n    time.sleep(0.001)", "within": 30, "start": 60}]
    )
    reading, writing = os.pipe()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-m", "tests.app.supervised", told]
    with subprocess.Popen(command, stdout=writing, stderr=subprocess.PIPE, cwd=ROOT, env=env) as supervisor:
        assert supervisor.stderr is not None
        os.close(writing)
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            assert pipe.read(10)
            children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children")
            until(lambda: children.read_text().split(), 30, "the service starts")
        service = int(children.read_text().split()[0])
        # It talks on: what it says is read, or the pipe would be full after some ten seconds of this.
        offset = _written(service)
        until(lambda: _written(service) > offset + 2000, 60, "the service goes on")
        supervisor.terminate()
        assert supervisor.wait(60) == 0
        assert not alive(service)
        assert supervisor.stderr.read() == b""


def _written(process: int) -> int:
    fields = dict(line.split(": ") for line in Path(f"/proc/{process}/io").read_text().splitlines())
    return int(fields["wchar"])
