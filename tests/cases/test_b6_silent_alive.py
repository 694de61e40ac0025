"""B6: alive but silent is not taken for dead. There is no heartbeat or lease that could be set wrongly."""

import signal
import threading
import time

from ordering import reconcile
from ordering.model import OnInterrupt, State
from tests.cases.checks import checks
from tests.cases.kit import Kit
from tests.conftest import Scale
from workers import process
from workers.settings import Settings


def still_running(kit: Kit, item: int, seconds: float) -> None:
    """Reconcile all the time for so many seconds: the item is running, until its body has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert reconcile.reconcile(kit.engine, process.alive) == 0
        ended = bool(kit.ends(item))
        assert kit.state(item) in ((State.RUNNING, State.SUCCEEDED) if ended else (State.RUNNING,))
        time.sleep(0.1)


def test_body_holds_the_interpreter(kit: Kit, scale: Scale) -> None:
    seconds = scale.seconds(20, least=6)  # longer than the grace of 5 s and the 3 s of the connection's bounds
    kit.up()
    kit.plan("a")
    item = kit.add("a", "probe.hold_interpreter", seconds, on_interrupt=OnInterrupt.REQUEUE)
    kit.wait_start(item)
    still_running(kit, item, seconds - 1)
    kit.wait_done(seconds + 30)
    assert len(kit.starts(item)) == 1
    assert kit.outcomes(item) == ["succeeded"]
    checks(kit)


def test_stopped_worker(kit: Kit, scale: Scale) -> None:
    seconds = scale.seconds(20, least=6)
    (worker,) = kit.up()
    kit.plan("a")
    release = kit.folder / "release"
    item = kit.add("a", "probe.wait_for", str(release), on_interrupt=OnInterrupt.REQUEUE)
    kit.wait_start(item)
    worker.stop_and_go(signal.SIGSTOP)
    try:
        still_running(kit, item, seconds)
    finally:
        worker.stop_and_go(signal.SIGCONT)
    release.touch()
    kit.wait_done()
    assert len(kit.starts(item)) == 1
    assert kit.outcomes(item) == ["succeeded"]
    checks(kit)


def test_all_slots_busy(kit: Kit, scale: Scale) -> None:
    kit.up(slots=2)
    release, items = kit.folder / "release", []
    for plan in ("a", "b", "c"):
        kit.plan(plan)
        items.append(kit.add(plan, "probe.wait_for", str(release)))
    for item in items[:2]:
        kit.wait_start(item)
    callers = [threading.Thread(target=reconcile.reconcile, args=(kit.engine, process.alive)) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    still_running(kit, items[0], scale.seconds(10, least=1))
    assert not kit.starts(items[2]), "all slots are busy"
    release.touch()
    kit.wait_done()
    assert [len(kit.starts(item)) for item in items] == [1, 1, 1]
    assert kit.sql("select count(*) from relevo.session where lost_at is not null")[0][0] == 0
    checks(kit)


def test_nothing_to_tune() -> None:
    assert not [name for name in Settings.model_fields if "heartbeat" in name or "lease" in name or "timeout" in name]
