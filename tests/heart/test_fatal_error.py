"""A worker whose event loop breaks does not linger: it ends, and what it ran is interrupted."""

from ordering.model import State
from tests.cases.kit import Kit, wait_until


def test_a_broken_loop_ends_the_worker(kit: Kit) -> None:
    catalogue = kit.catalogue(imports=("tests.heart.fatal_tasks",), name="fatal.toml")
    kit.feeder()
    worker = kit.worker(RELEVO_CATALOGUE=str(catalogue))
    kit.plan("p")
    item = kit.add("p", "fatal.nap")
    kit.wait_start(item)
    wait_until(lambda: worker.process.poll() is not None, 60, "the end of the worker")
    assert worker.process.poll() != 0
    kit.wait_state(item, State.INTERRUPTED)
