"""B1: kill -9 leaves nothing running for ever."""

import pytest

from ordering import plans
from ordering.errors import PlanBlocked
from ordering.model import State
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit


def test_every_process_killed_then_new_workers(kit: Kit) -> None:
    kit.feeder()
    worker = kit.worker(2)
    kit.plan("a")
    first = kit.add("a", "probe.nap", 60)
    second = kit.add("a", "probe.nap", 0)
    pid = kit.wait_start(first).pid
    worker.kill_all()

    cut = kit.wait_state(first, State.INTERRUPTED, seconds=2)
    assert cut.error is not None
    for evidence in (f"process {pid}", "host ", "session ", "open since "):
        assert evidence in cut.error
    kit.worker(2)
    with kit.tx() as tx, pytest.raises(PlanBlocked, match=str(first)):
        plans.start(tx, "a", actor=ACTOR)
    assert not kit.starts(second), "nothing starts behind what nobody has decided"
    with kit.tx() as tx:
        tx.exec_driver_sql("update relevo.item set args = '[0]' where id = %s", (first,))
    kit.retry(first)
    kit.wait_done()
    assert kit.outcomes(first) == ["interrupted", "succeeded"]
    checks(kit)
