"""The guard, with real processes: whatever ends the pool process, nothing that its command started lives on."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.workers.commands import until

ROOT = Path(__file__).parents[2]

POOL = """
import json, os, signal, sys, threading, time
from workers.shell import run

def fork():
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        time.sleep(100)
        os._exit(0)
    print(child, flush=True)

if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, lambda *_: None)
if "forks" in sys.argv:
    threading.Thread(target=fork, daemon=True).start()
print("ready", flush=True)
told = [""]
try:
    run(json.loads(sys.argv[1]), on_change=lambda head, *_: told.append(head))
    print(told[-1], flush=True)
except Exception as error:
    print(type(error).__name__, error, flush=True)
"""

# Each is deaf to what asks politely, and leaves a file with its name when it stands.
TREE = """
import os, signal, sys, time
def stand(name, sessions):
    command = os.getpid()
    for session in sessions:
        if os.fork():
            if os.getpid() == command:
                return
            os._exit(0)
        if session:
            os.setsid()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    open(os.path.join(sys.argv[1], name), "w").close()
    while True:
        time.sleep(100)
stand("child", [False])
stand("session", [True])
stand("daemon", [True, False])
stand("thrice", [True, True, True])
stand("command", [])
"""
STANDING = {"child", "session", "daemon", "thrice", "command"}

# Never the same process for longer than a fork takes.
HOPPER = """
import os, sys
open(os.path.join(sys.argv[1], "hopping"), "w").close()
if os.fork():
    os._exit(0)
while not os.fork():
    pass
os._exit(0)
"""


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


class Pool:
    """A stand-in for a pool process; it and all that it starts carry a mark in their environment."""

    def __init__(self, command: list[str], *words: str) -> None:
        self.mark = f"TEST_MARK={uuid.uuid4()}".encode()
        name, _, value = self.mark.decode().partition("=")
        self.process = subprocess.Popen(
            [sys.executable, "-c", POOL, json.dumps(command), *words],
            cwd=ROOT,
            env={**os.environ, name: value, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert self.says() == "ready"

    def says(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def alive(self) -> set[int]:
        """Every living process with the mark."""
        found = set()
        for folder in Path("/proc").iterdir():
            try:
                if folder.name.isdigit() and self.mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.add(int(folder.name))
            except OSError:
                continue
        return found

    def guard(self) -> int:
        def guards() -> list[int]:
            return [pid for pid in self.alive() if b"guard.py" in _command_line(pid)]

        assert until(guards)
        return guards()[0]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        assert self.process.stdout is not None
        self.process.stdout.close()
        for pid in self.alive():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def start() -> Iterator[Callable[..., Pool]]:
    pools: list[Pool] = []

    def make(command: list[str], *words: str) -> Pool:
        pools.append(Pool(command, *words))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()


def tree(folder: Path) -> list[str]:
    return [sys.executable, "-S", "-c", TREE, str(folder)]


def stands(folder: Path) -> bool:
    return {path.name for path in folder.iterdir()} == STANDING


def test_kill_9_of_the_pool_process_ends_the_whole_tree(start: Callable[..., Pool], tmp_path: Path) -> None:
    pool = start(tree(tmp_path))
    assert until(lambda: stands(tmp_path))
    assert until(lambda: len(pool.alive()) == len(STANDING) + 2), pool.alive()  # with the pool process and the guard
    pool.kill()
    assert until(lambda: not pool.alive()), pool.alive()


@pytest.mark.parametrize("milliseconds", [1, 2, 4, 7, 10, 14, 18, 22, 26, 30, 36, 42, 50, 70, 100])
def test_kill_9_while_the_command_starts(start: Callable[..., Pool], tmp_path: Path, milliseconds: int) -> None:
    pool = start(tree(tmp_path))
    time.sleep(milliseconds / 1000)
    pool.kill()
    assert until(lambda: not pool.alive()), pool.alive()


def test_child_that_a_body_forks_does_not_keep_the_command_alive(start: Callable[..., Pool], tmp_path: Path) -> None:
    pool = start(tree(tmp_path), "forks")
    child = int(pool.says())
    assert until(lambda: stands(tmp_path))
    pool.kill()
    assert until(lambda: pool.alive() == {child}), pool.alive()


def test_kill_9_of_the_pool_process_group_ends_the_whole_tree(start: Callable[..., Pool], tmp_path: Path) -> None:
    pool = start(tree(tmp_path))
    assert until(lambda: stands(tmp_path))
    os.killpg(pool.process.pid, signal.SIGKILL)
    pool.process.wait()
    assert until(lambda: not pool.alive()), pool.alive()


def test_term_to_the_pool_process_group_leaves_guard_and_command_alone(start: Callable[..., Pool], tmp_path: Path) -> None:
    go = tmp_path / "go"
    pool = start(["sh", "-c", f"touch {tmp_path}/up; while [ ! -e {go} ]; do sleep 0.02; done; echo well"], "deaf")
    assert until((tmp_path / "up").exists)
    os.killpg(pool.process.pid, signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        os.kill(pool.guard(), number)
    go.touch()
    assert pool.says() == "well"


def test_kill_9_of_the_guard_itself_ends_the_command_and_is_said(start: Callable[..., Pool]) -> None:
    pool = start(["sh", "-c", "sleep 100 & sleep 100"])
    assert until(lambda: len(pool.alive()) == 5)  # pool process, guard, sh, two sleeps
    os.kill(pool.guard(), signal.SIGKILL)
    assert pool.says().startswith("GuardLost the guard process of the command ended (status -9)")
    assert until(lambda: len(pool.alive()) <= 1)


def test_stopped_tree_is_killed(start: Callable[..., Pool]) -> None:
    pool = start(["sh", "-c", "sleep 100 & kill -STOP $! $$"])
    assert until(lambda: len(pool.alive()) == 4)
    pool.kill()
    assert until(lambda: not pool.alive())


def test_process_that_forks_away_all_the_time_is_caught(start: Callable[..., Pool], tmp_path: Path) -> None:
    pool = start([sys.executable, "-S", "-c", HOPPER, str(tmp_path)])
    assert until((tmp_path / "hopping").exists)
    pool.process.wait(60)  # the command has ended, so what it left is ended
    assert until(lambda: not pool.alive())
