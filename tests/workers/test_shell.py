"""The body of the task `shell`, with real commands."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.patience import Stopwatch
from tests.workers.commands import alive, printed, python, until
from workers.guarded import Guarded
from workers.shell import AlreadyDone, BadCommand, CommandFailed, run


def test_stdout_and_stderr_in_the_order_of_their_arrival() -> None:
    assert printed(["sh", "-c", "echo one; echo two >&2; echo three"]) == "one\ntwo\nthree\n"


def test_exit_code() -> None:
    with pytest.raises(CommandFailed) as caught:
        run(["sh", "-c", "seq 20; exit 7"])
    assert (caught.value.code, caught.value.signal) == (7, None)
    assert str(caught.value) == "'sh' ended with exit code 7; its last lines:\n" + "\n".join(map(str, range(11, 21)))


@pytest.mark.parametrize(("number", "name"), [(9, "signal 9 (SIGKILL)"), (15, "signal 15 (SIGTERM)"), (40, "signal 40")])
def test_signal(number: int, name: str) -> None:
    with pytest.raises(CommandFailed) as caught:
        run(python(f"import os; os.kill(os.getpid(), {number})"))
    assert (caught.value.code, caught.value.signal) == (None, number)
    assert f"was ended by {name}; it printed nothing" in str(caught.value)


def test_failure_can_be_pickled() -> None:
    error = CommandFailed("make", 2, None, "last")
    assert str(pickle.loads(pickle.dumps(error))) == str(error) == "'make' ended with exit code 2; its last lines:\nlast"


def test_unless(tmp_path: Path) -> None:
    made = tmp_path / "made"
    unless = ["test", "-f", str(made)]
    run(["touch", str(made)], unless=unless)
    with pytest.raises(AlreadyDone, match=r"^already done: the unless command 'test' exited with 0$"):
        run(["rm", str(made)], unless=unless)
    assert made.exists()


def test_env_and_cwd(tmp_path: Path) -> None:
    lines = printed(["env"], env={"A": "1", "É": "ü€"}).splitlines()
    assert {"A=1", "É=ü€", f"PATH={os.environ['PATH']}"} <= set(lines)
    assert printed(["pwd"], cwd=str(tmp_path)) == f"{tmp_path}\n"


def test_path_of_env_is_searched(tmp_path: Path) -> None:
    own = tmp_path / "own-program"
    own.write_text("#!/bin/sh\necho found\n")
    own.chmod(0o755)
    assert printed(["own-program"], env={"PATH": f"/nowhere:{tmp_path}"}) == "found\n"
    assert printed(["./own-program"], cwd=str(tmp_path)) == "found\n"


def test_command_starts_clean() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as Celery's pool processes do
    try:
        status = printed(["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"])
    finally:
        signal.signal(signal.SIGINT, before)
    threads = 0b11 << 31  # signals 32 and 33 are the C library's own, and no program can set or reset them
    assert [int(mask, 16) & ~threads for mask in re.findall(r"\t(\w+)", status)] == [0, 0]
    assert printed(["sh", "-c", "ls /proc/$$/fd; cat"]).split() == ["0", "1", "2"]
    session, group = printed(python("import os; print(os.getsid(0), os.getpgrp())")).split()
    assert session == group
    assert int(session) != os.getsid(0)


@pytest.mark.parametrize(
    ("command", "words", "sentence"),
    [
        ("make test", {}, 'command must be a list of strings such as ["make", "test"]; for a shell line write ["sh", "-c", "..."]'),
        (None, {}, 'command must be a list of strings such as ["make", "test"], not NoneType'),
        ([], {}, "command is an empty list; its first string names the program to run"),
        ([""], {}, "command[0] is empty; it names the program to run"),
        (["echo", 5], {}, "command[1] must be a string, not int; put it in quotes"),
        (["echo", "a\0"], {}, "command[1] contains a NUL character, which no program can be given; remove it"),
        (["echo", "\ud800"], {}, "command[1] contains half a character (a lone surrogate), which has no bytes; remove it"),
        (["no-such-program"], {}, "command: no program 'no-such-program' is on the worker's PATH; install it or write its full path"),
        (["/no/such"], {}, "command: there is no file '/no/such' on the worker; correct the path"),
        (["/etc/passwd"], {}, "command: '/etc/passwd' is not executable for the worker; chmod +x it or name a program"),
        (["a" * 5000], {}, f"command: '{'a' * 5000}' cannot be run (File name too long)"),
        (["echo", "x" * 3_000_000], {}, "command: the strings and env are longer than the system allows; hand the data over in a file"),
        (["true"], {"cwd": "/no/such"}, "cwd: there is no folder '/no/such' on the worker; make it or name another"),
        (["true"], {"cwd": "/etc/passwd"}, "cwd: '/etc/passwd' is not a folder; name one"),
        (["true"], {"cwd": 3}, "cwd must be a string, not int; put it in quotes"),
        (["true"], {"env": ["A"]}, "env must be a table of names and strings, not list"),
        (["true"], {"env": {"A": 1}}, "env['A'] must be a string, not int; put it in quotes"),
        (["true"], {"env": {"A=B": "1"}}, "env has the name 'A=B'; a name must not be empty nor contain '='"),
        (
            ["true"],
            {"unless": "true"},
            'unless must be a list of strings such as ["make", "test"]; for a shell line write ["sh", "-c", "..."]',
        ),
        (["true"], {"unless": ["no-such"]}, "unless: no program 'no-such' is on the worker's PATH; install it or write its full path"),
    ],
)
def test_what_cannot_be_run_is_said_in_one_sentence(command: object, words: dict[str, object], sentence: str) -> None:
    with pytest.raises(BadCommand) as caught:
        run(command, **words)  # type: ignore[arg-type]
    assert str(caught.value) == sentence


def test_scripts_without_an_interpreter(tmp_path: Path) -> None:
    for text, why in (("#!/no/such\n", "the interpreter that the first line of"), ("echo\n", "is not a program; name its interpreter")):
        script = tmp_path / "script"
        script.write_text(text)
        script.chmod(0o755)
        with pytest.raises(BadCommand, match=why):
            run([str(script)])


def test_output_that_no_database_takes_becomes_visible() -> None:
    assert printed(["printf", r"a\000b\377c\355\240\200d\n"]) == "a\ufffdb\ufffdc\ufffd\ufffd\ufffdd\n"


def test_output_is_told_while_the_command_runs(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    told: list[tuple[str, str, int]] = []

    def on_change(head: str, tail: str, dropped: int) -> None:
        told.append((head, tail, dropped))
        seen.touch()

    run(["sh", "-c", f"echo first; while [ ! -e {seen} ]; do sleep 0.02; done; echo last"], on_change=on_change)
    assert told == [("first\n", "", 0), ("first\nlast\n", "", 0)]


def test_it_is_told_at_most_twice_a_second() -> None:
    times: list[float] = []
    begun = time.monotonic()
    run(["sh", "-c", "for i in $(seq 60); do echo $i; sleep 0.02; done"], on_change=lambda *_: times.append(time.monotonic()))
    assert 2 <= len(times) <= 2 * (time.monotonic() - begun) + 1


def test_slow_storing_does_not_slow_the_command(tmp_path: Path) -> None:
    through = tmp_path / "through"
    waited: list[bool] = []
    command = python(
        "import sys, time; print('up', flush=True); time.sleep(0.7); print('x' * 5_000_000); open(sys.argv[1], 'w')", str(through)
    )
    dropped: list[int] = []

    def slow(head: str, tail: str, left_out: int) -> None:
        waited.append(until(through.exists))
        dropped.append(left_out)

    run(command, on_change=slow)
    assert waited[0]
    assert dropped[-1] == 5_000_004 - 128 * 1024


def test_error_while_storing_is_logged_and_the_command_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("no database")

    assert run(["echo", "well"], on_change=refuse) > 0
    assert "no database" in caplog.text


def test_200_megabytes_need_no_memory() -> None:
    measured = """
import resource
from workers.shell import run
run(["true"])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
told = []
run(["sh", "-c", "yes 0123456789abcdefghi | head -c 200000000"], on_change=lambda *now: told.append(now[2]))
print(told[-1], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", measured], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True)
    dropped, kibibytes = map(int, done.stdout.split())
    assert dropped == 200_000_000 - 128 * 1024
    assert kibibytes < 5000


def test_what_the_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    with Stopwatch() as watch:
        output = printed(["sh", "-c", "setsid sleep 100 & echo $!; (sleep 100 &) ; exit 0"])
    assert watch.seconds < 10  # neither holds the open pipe against us
    assert not alive(int(output))


def test_what_it_leaves_behind_is_asked_first(tmp_path: Path) -> None:
    code = "trap 'echo asked; exit' TERM; touch up; while :; do sleep 0.02; done"
    output = printed(["sh", "-c", f"({code}) & while [ ! -e up ]; do sleep 0.02; done"], cwd=str(tmp_path))
    assert "asked\n" in output


@pytest.mark.parametrize("code", [0, 3])
def test_what_ignores_being_killed_is_named(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A process that hangs in the kernel cannot be made here, so the guard's word for it is put into its mouth."""
    wait = Guarded.wait
    monkeypatch.setattr(Guarded, "wait", lambda self: replace(wait(self), left=(12, 345)))
    told: list[str] = []
    command, named = ["sh", "-c", f"echo well; exit {code}"], "[still there, though killed: process 12, 345]"
    if code:
        with pytest.raises(CommandFailed, match=re.escape(named)):
            run(command, on_change=lambda *now: told.append(now[0] + now[1]))
    else:
        run(command, on_change=lambda *now: told.append(now[0] + now[1]))
    assert named in told[-1]


#: Runs commands in every way and says what this process had open, ran and was the parent of before and after.
COUNTED = """
import contextlib, os, threading
from workers.shell import BadCommand, CommandFailed, run

def count():
    try:
        parent = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) or "of one that lives"
    except ChildProcessError:
        parent = False
    return len(os.listdir("/proc/self/fd")), threading.active_count(), parent

run(["true"])
print(count())
for _ in range(5):
    run(["true"], on_change=lambda *_: None)
    for wrong in (["false"], ["no-such-program"]):
        with contextlib.suppress(CommandFailed, BadCommand):
            run(wrong)
print(count())
"""


def test_neither_descriptors_nor_threads_nor_processes_pile_up() -> None:
    # In a process of its own: here, what the fixtures of other tests keep open comes and goes by itself.
    said = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True, timeout=60).stdout
    before, after = said.splitlines()
    assert after == before


def test_start_of_the_guard_is_quick() -> None:
    def seconds(work: Callable[[], object]) -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    bare = min(seconds(lambda: subprocess.run(["true"], check=True)) for _ in range(10))
    assert min(seconds(lambda: run(["true"])) for _ in range(10)) - bare < 0.5  # seen: 20 ms
