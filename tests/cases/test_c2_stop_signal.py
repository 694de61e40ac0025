"""C2: a stop signal reaches the worker and not its bodies; what it cuts is marked and handled once."""

import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from celery import Celery

from ordering.items import Edit
from ordering.model import State
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.cases.processes import Service
from tests.conftest import Scale


def to_main(worker: Service) -> None:
    worker.term()


def to_group(worker: Service) -> None:
    """As an init system does: to every process of the worker's group."""
    os.killpg(worker.pid, signal.SIGTERM)


def ctrl_c(worker: Service) -> None:
    """As a terminal does: to every process of the group in front."""
    os.killpg(worker.pid, signal.SIGINT)


@pytest.mark.parametrize("stop", [to_main, to_group, ctrl_c])
def test_body_ends_within_the_grace_time(kit: Kit, scale: Scale, stop: Callable[[Service], None]) -> None:
    (worker,) = kit.up()
    kit.plan("a", stop_grace=timedelta(seconds=60))
    release = kit.folder / "release"
    item, behind = kit.add("a", "probe.wait_for", str(release)), kit.add("a", "probe.nap", 0)
    kit.wait_start(item)
    pool = worker.pool()
    stop(worker)
    wait_until(lambda: "Stopping gracefully" in worker.text(), 15, "the worker has heard it")
    time.sleep(scale.seconds(5, least=1))
    release.touch()
    assert worker.wait(30) == 0
    assert not kit.living().intersection(pool)
    assert kit.state(item) is State.SUCCEEDED
    assert not kit.starts(behind)
    kit.worker()
    kit.wait_done()
    assert (len(kit.starts(item)), len(kit.starts(behind))) == (1, 1)
    checks(kit)


@pytest.mark.parametrize("how", ["term", "term twice", "remote control"])
def test_longer_than_the_grace_time_or_told_twice_is_marked_and_cut(kit: Kit, how: str) -> None:
    (worker,) = kit.up()
    kit.plan("a", stop_grace=timedelta(seconds=600 if how == "term twice" else 1.5))
    item, behind = kit.add("a", "probe.nap", 60), kit.add("a", "probe.nap", 0)
    body = kit.wait_start(item)
    if how == "remote control":  # as Flower does it
        with Celery("elsewhere", broker=kit.broker_url, set_as_current=False) as elsewhere:
            elsewhere.control.shutdown()
    else:
        worker.term()
    if how == "term twice":
        time.sleep(1)
        assert kit.state(item) is State.RUNNING
        worker.term()
    cut = kit.wait_state(item, State.INTERRUPTED, seconds=20)
    assert (cut.error or "").startswith("shutdown: ")
    assert f"process {body.pid}" in (cut.error or "")
    assert (cut.attempts, cut.tries) == (1, 0), "a shutdown uses up no try"
    assert worker.wait(30) == 0
    wait_until(lambda: body.pid not in kit.living(), 30, "the body is gone")
    assert kit.ends(item), "TERM comes first, so that a body can let go of what it holds"
    kit.worker()
    kit.retry(item, Edit(args=[0]))
    kit.wait_done()
    assert kit.outcomes(item) == ["interrupted", "succeeded"]
    assert len(kit.starts(behind)) == 1
    checks(kit)
