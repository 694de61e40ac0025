"""B3: a new process under the name of a dead one does not keep the dead one's item alive."""

import os
import shutil
import subprocess
import sys

import psutil
import pytest

from ordering.items import Edit
from ordering.model import OnInterrupt, State
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until

SESSIONS = "select id, worker, pid, pid_started, opened_at, closed_at from relevo.session order by id"


def test_same_name_and_the_orphan_is_found(kit: Kit) -> None:
    feeder = kit.feeder(ready=False)
    first = kit.worker(1, name="steady", ready=False)
    for service in (feeder, first):
        service.wait_ready()
    kit.plan("a")
    item = kit.add("a", "probe.nap", 60)
    body = kit.wait_start(item)
    first.kill_all()
    second = kit.worker(1, name="steady", ready=False)
    cut = kit.wait_state(item, State.INTERRUPTED, seconds=8)
    second.wait_ready()

    dead, living = wait_until(lambda: kit.sql(SESSIONS)[1:] and kit.sql(SESSIONS), 15, "the second worker's session")
    assert f"session {dead.id}," in (cut.error or "")
    assert f"process {body.pid}," in (cut.error or "")
    assert (dead.closed_at is not None, living.closed_at) == (True, None)
    assert dead.worker != living.worker, "the two can be told apart wherever the worker is shown"
    assert dead.worker.startswith("steady@")
    assert living.worker.startswith("steady@")
    kit.retry(item, Edit(args=[0]))
    kit.wait_done()
    assert [attempt.session for attempt in kit.history(item).attempts] == [dead.id, living.id]
    checks(kit)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("unshare") is None, reason="a pid namespace needs root and unshare(1)")
def test_same_pid_in_another_namespace_is_another_process(kit: Kit) -> None:
    """As in a container that restarts in place: same host name, same name, same small pids; only the namespace differs."""
    kit.feeder()
    kit.plan("a")
    item = kit.add("a", "probe.nap", 60, on_interrupt=OnInterrupt.REQUEUE)
    first = in_container(kit, "first")
    try:
        kit.wait_start(item, seconds=30)
        end(first)
        wait_until(lambda: kit.outcomes(item) == ["interrupted"], 8, "what was cut is marked")
        with kit.tx() as tx:
            tx.exec_driver_sql("update relevo.item set args = '[0]' where id = %s", (item,))
        second = in_container(kit, "second")
        try:
            kit.wait_done()
            dead, living = kit.sql(SESSIONS)
            assert dead.pid == living.pid, "the case is about equal pids"
            assert kit.outcomes(item) == ["interrupted", "succeeded"]
            # From here the process of another namespace cannot be seen: an automatic requeue waits for the grace of 5 s. Unless the
            # kernel gave the new namespace the number of the old one, which it does only when that is gone with all its processes.
            waits = "select closed_at - lost_at as waited, pid_namespace from relevo.session order by id"
            lost, alive = kit.sql(waits)
            assert lost.waited.total_seconds() >= 5 or lost.pid_namespace == alive.pid_namespace
        finally:
            end(second)
    finally:
        end(first)


def in_container(kit: Kit, log: str) -> subprocess.Popen[bytes]:
    """A worker as pid 1 of a namespace of its own."""
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-P", "-m", "workers.worker"]
    with (kit.folder / f"{log}.log").open("wb") as output:
        return subprocess.Popen(
            [*command, "--slots", "1", "--name", "steady"],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=kit.environment(), cwd=kit.folder, start_new_session=True,
        )  # fmt: skip


def end(container: subprocess.Popen[bytes]) -> None:
    """kill -9 of the whole namespace."""
    if container.poll() is None:
        for child in psutil.Process(container.pid).children():
            child.kill()
    container.wait(60)
