"""J3: Postgres restarts while idle, during a body, or when an outcome is written: one start, never stuck, no hands needed."""

import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from ordering.model import State
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.cases.restartable import Restartable
from tests.conftest import Scale

SLOTS = 2


def restarts(server: Restartable, seconds: float) -> None:
    server.stop()
    time.sleep(seconds)
    server.start()


def dies(server: Restartable, seconds: float) -> None:
    server.kill()
    time.sleep(seconds)
    server.start()


harms = pytest.mark.parametrize("harm", [restarts, dies])
Harm = Callable[[Restartable, float], None]


def everything_works(kit: Kit, pids: set[int]) -> None:
    """20 items for each pool process, all by processes that were there before."""
    for plan in range(SLOTS):
        kit.plan(f"after-{plan}")
    items = [kit.add(f"after-{number % SLOTS}", "probe.nap", 0) for number in range(20 * SLOTS)]
    kit.wait_done()
    assert {start.pid for item in items for start in kit.starts(item)} <= pids
    assert all(service.process.poll() is None for service in kit.services)
    assert all(kit.outcomes(item) == ["succeeded"] for item in items)
    checks(kit)


@harms
def test_while_idle(own_kit: Kit, own_postgres: Restartable, scale: Scale, harm: Harm) -> None:
    (worker,) = own_kit.up(slots=SLOTS)
    pids = set(worker.pool())
    harm(own_postgres, scale.seconds(20, least=1))
    everything_works(own_kit, pids)


@harms
def test_during_a_body(own_kit: Kit, own_postgres: Restartable, scale: Scale, harm: Harm) -> None:
    (worker,) = own_kit.up(slots=SLOTS)
    pids = set(worker.pool())
    own_kit.plan("a")
    body = scale.seconds(10, least=3)
    item = own_kit.add("a", "probe.nap", body)
    own_kit.wait_start(item)
    time.sleep(body / 4)
    # Down beyond the body's end: the outcome waits for the server, on a session that has to be taken again.
    harm(own_postgres, body)
    own_kit.wait_done()
    assert own_kit.outcomes(item) == ["succeeded"]
    assert len(own_kit.starts(item)) == 1
    everything_works(own_kit, pids)


def test_shorter_than_the_body(own_kit: Kit, own_postgres: Restartable, scale: Scale) -> None:
    (worker,) = own_kit.up(slots=SLOTS)
    pids = set(worker.pool())
    own_kit.plan("a")
    release = own_kit.folder / "release"
    item = own_kit.add("a", "probe.wait_for", str(release))
    own_kit.wait_start(item)
    restarts(own_postgres, scale.seconds(6, least=0.5))
    # The feeder is back before the session or after it: interrupted for a moment at the most, then its own process takes it back.
    own_kit.wait_state(item, State.RUNNING)
    time.sleep(scale.seconds(20, least=4))
    release.touch()
    own_kit.wait_done()
    assert own_kit.outcomes(item) == ["succeeded"]
    assert len(own_kit.starts(item)) == 1
    everything_works(own_kit, pids)


@harms
def test_while_the_outcome_is_written(own_kit: Kit, own_postgres: Restartable, scale: Scale, harm: Harm) -> None:
    (worker,) = own_kit.up(slots=SLOTS)
    pids = set(worker.pool())
    own_kit.plan("a")
    release = own_kit.folder / "release"
    item = own_kit.add("a", "probe.wait_for", str(release))
    own_kit.wait_start(item)
    with own_kit.psql() as somebody:
        # The outcome's transaction takes the plan first, and waits here in the middle of it.
        somebody.execute("select from relevo.plan where name = 'a' for no key update")
        release.touch()
        wait_until(lambda: own_kit.ends(item), 30, "the body ends")
        wait_until(lambda: own_kit.waiting("relevo session%"), 15, "the outcome waits for the plan")
        down = threading.Thread(target=harm, args=[own_postgres, scale.seconds(5, least=0.5)])
        down.start()
        down.join()
        somebody.close()
    own_kit.wait_done()
    assert own_kit.outcomes(item) == ["succeeded"]
    assert len(own_kit.starts(item)) == 1
    everything_works(own_kit, pids)


def test_a_commit_whose_answer_is_lost(kit: Kit, scale: Scale) -> None:
    """The server takes the outcome and the connection breaks before the worker hears of it: finished once."""
    proxy, url = kit.database_proxy()
    (worker,) = kit.up(slots=SLOTS, RELEVO_DATABASE_URL=url)
    pids = set(worker.pool())
    kit.plan("a")
    for _ in range(scale.rounds(40, least=4)):
        item = kit.add("a", "probe.nap", 0.2)
        kit.wait_start(item)
        proxy.delay = 0.03  # each piece hangs for a while, so that a cut hits one of the round trips of the outcome
        wait_until(partial(kit.ends, item), 30, "the body ends")
        time.sleep(0.03 * (item % 7))
        proxy.cut()
        proxy.delay = 0
        kit.wait_done()
        assert kit.outcomes(item) == ["succeeded"]
        assert len(kit.starts(item)) == 1
    everything_works(kit, pids)
