"""A stop ends by itself, whatever the pool's processes and the broker were doing in its instant."""

import array
import fcntl
import os
import signal
import termios
from datetime import timedelta
from pathlib import Path

from ordering.model import State
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until


@both_brokers
def test_stopped_while_a_message_is_on_its_way_to_a_pool_process(kit: Kit) -> None:
    """The process runs the item, and neither it nor the worker waits for somebody who listens no more."""
    kit.feeder()
    worker = kit.worker(1)
    kit.plan("a")
    (child,) = worker.pool()
    os.kill(child, signal.SIGSTOP)
    item = kit.add("a", "probe.nap", 0.05)
    wait_until(lambda: unread(child), 30, "the message is written to the pool process")
    message = unread(child)
    worker.term()
    wait_until(lambda: unread(child) > message, 30, "the pool process is told to end")
    os.kill(child, signal.SIGCONT)
    assert worker.wait(20) == 0
    kit.wait_state(item, State.SUCCEEDED)
    assert len(kit.starts(item)) == 1
    checks(kit)


@both_brokers
def test_a_message_that_arrives_in_the_instant_of_the_stop_goes_back(kit: Kit) -> None:
    """Lost with the worker it would be missed after 10 s only."""
    kit.feeder()
    kit.plan("a")
    worker = kit.worker(1)
    for _ in range(20):
        worker.send(signal.SIGSTOP)
        item = kit.add("a", "probe.nap", 0)
        wait_until(lambda item=item: kit.dispatches(item), 30, "the item is dispatched")  # type: ignore[misc]
        try:
            wait_until(lambda: kit.messages() == 0, 1.5, "the broker has handed the message out")
            break
        except AssertionError:  # a Redis was asked by this worker a second ago, and waits to be asked again
            worker.send(signal.SIGCONT)
            kit.wait_state(item, State.SUCCEEDED)
    worker.term()
    worker.send(signal.SIGCONT)
    wait_until(lambda: kit.messages() == 1, 15, "the message is back")
    assert worker.wait(20) == 0
    runs_elsewhere(kit, item)


@both_brokers
def test_a_message_that_no_pool_process_got_goes_back(kit: Kit) -> None:
    kit.feeder()
    kit.plan("a")
    held = kit.folder / "held"
    held.touch()
    catalogue = kit.catalogue(["tests.cases.probe_tasks", "tests.cases.stop_hooks"], "held.toml")
    worker = kit.worker(1, RELEVO_CATALOGUE=str(catalogue), PROBE_HELD=str(held))
    item = kit.add("a", "probe.nap", 0)
    wait_until(lambda: kit.dispatches(item) and kit.messages() == 0, 30, "the worker has taken the message")
    worker.term()
    wait_until(lambda: kit.messages() == 1, 15, "the message is back")
    held.unlink()
    assert worker.wait(20) == 0
    runs_elsewhere(kit, item)


def test_what_hangs_is_ended(kit: Kit) -> None:
    """One pool process that does nothing any more, and a body whose end cannot be marked: somebody has locked its plan."""
    kit.feeder()
    worker = kit.worker(2)
    kit.plan("a", stop_grace=timedelta(seconds=0.5))
    item = kit.add("a", "probe.nap", 60)
    body = kit.wait_start(item)
    (idle,) = [pid for pid in worker.pool() if pid != body.pid]
    os.kill(idle, signal.SIGSTOP)
    with kit.psql() as somebody:
        somebody.execute("select from relevo.plan for update")
        worker.term()
        assert worker.wait(0.5 + 10 + 5 + 30) == 0
        somebody.rollback()
    assert worker.text().count("does not end by itself") == 2
    kit.wait_state(item, State.INTERRUPTED, seconds=15)
    checks(kit)


def test_a_thread_of_a_project_that_never_ends(kit: Kit) -> None:
    catalogue = kit.catalogue(["tests.cases.probe_tasks", "tests.cases.stop_hooks"], "thread.toml")
    worker = kit.worker(1, RELEVO_CATALOGUE=str(catalogue), PROBE_THREAD="1")
    worker.term()
    assert worker.wait(10 + 30) == 1
    assert "ended by force" in worker.text()


def runs_elsewhere(kit: Kit, item: int) -> None:
    """The message is there for the next worker."""
    kit.worker(1)
    kit.wait_state(item, State.SUCCEEDED)
    assert kit.sends(item) == [1], "it was not missed first"
    assert len(kit.starts(item)) == 1
    checks(kit)


def unread(pid: int) -> int:
    """Bytes in the pipes that the process reads."""
    total = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if not os.readlink(entry).startswith("pipe:") or not os.stat(entry, follow_symlinks=False).st_mode & 0o400:
                continue
            descriptor = os.open(entry, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            size = array.array("i", [0])
            fcntl.ioctl(descriptor, termios.FIONREAD, size)
            total += size[0]
        finally:
            os.close(descriptor)
    return total
