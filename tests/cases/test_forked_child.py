"""A pool process whose body forks: the session ends with the process, although the forked child lives on."""

import os
import signal

from ordering.items import Edit
from ordering.model import State
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until


def test_lock_is_free_although_the_forked_child_lives(kit: Kit) -> None:
    kit.up()
    kit.plan("a")
    item, behind = kit.add("a", "probe.fork", 60), kit.add("a", "probe.nap", 0)
    body = kit.wait_start(item)
    (forked,) = wait_until(lambda: kit.notes(item, "forked"), 30, "the body has forked")
    try:
        os.kill(body.pid, signal.SIGKILL)
        cut = kit.wait_state(item, State.INTERRUPTED, seconds=8)
        assert f"process {body.pid}" in (cut.error or "")
        assert forked.pid in kit.living()
        closed = "select count(*) from relevo.session where closed_at is not null"
        wait_until(lambda: kit.sql(closed)[0][0] == 1, 15, "its session is closed")
        # Its goodbye must not end a session of anybody else either: the other pool process works on.
        kit.retry(item, Edit(task="probe.nap", args=[0]))
        kit.wait_done()
        assert len(kit.starts(behind)) == 1
    finally:
        os.kill(forked.pid, signal.SIGKILL)
    wait_until(lambda: forked.pid not in kit.living(), 30, "the forked child is gone")
    checks(kit)


def test_forked_child_ends_before_the_body(kit: Kit) -> None:
    """The child's exit closes its copy of the connection; the parent's session must not hear of it."""
    kit.up()
    kit.plan("a")
    items = [kit.add("a", "probe.fork", 1.0), kit.add("a", "probe.nap", 0)]
    kit.wait_done()
    assert [kit.outcomes(item) for item in items] == [["succeeded"], ["succeeded"]]
    assert kit.sql("select count(*) from relevo.session where lost_at is not null")[0][0] == 0
    checks(kit)
