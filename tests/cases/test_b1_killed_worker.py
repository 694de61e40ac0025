"""B1: kill -9 leaves nothing running for ever, whichever process it hits."""

import os
import signal

import pytest

from ordering import plans
from ordering.errors import PlanBlocked
from ordering.items import Edit
from ordering.model import OnInterrupt, State
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, Note, wait_until


def interrupted_with_evidence(kit: Kit, body: Note, seconds: float = 8.0) -> None:
    """The item of `body`, whose process was killed just now, is marked in time, with who ran it, where, and since when."""
    cut = kit.wait_state(body.item, State.INTERRUPTED, seconds=seconds)
    assert cut.error is not None
    for evidence in (f"process {body.pid}", "host ", "session ", "worker ", "open since "):
        assert evidence in cut.error
    assert cut.at_head, "an interrupted head keeps its place"


def start_refuses_until_decided(kit: Kit, plan: str, cut: int, behind: int) -> None:
    """`start` says which item is unresolved; a retry, of a shorter nap, lets the same run go on to its end."""
    run = kit.view(plan).run
    with kit.tx() as tx, pytest.raises(PlanBlocked, match=f"{cut}.*interrupted"):
        plans.start(tx, plan, actor=ACTOR)
    assert not kit.starts(behind), "nothing starts behind what nobody has decided"
    kit.retry(cut, Edit(args=[0]))
    kit.wait_done()
    wait_until(lambda: kit.view(plan).status == "drained", 15, "the run ends")
    after = kit.view(plan).run
    assert run is not None
    assert after is not None
    assert run.id == after.id, "the same run went on"
    assert kit.outcomes(cut) == ["interrupted", "succeeded"]


def test_every_process_killed_then_new_workers(kit: Kit) -> None:
    (worker,) = kit.up()
    kit.plan("a")
    cut, behind = kit.add("a", "probe.nap", 60), kit.add("a", "probe.nap", 0)
    body = kit.wait_start(cut)
    worker.kill_all()
    interrupted_with_evidence(kit, body)
    wait_until(lambda: not kit.sql("select id from relevo.session where closed_at is null"), 15, "every session is closed")
    kit.worker()
    start_refuses_until_decided(kit, "a", cut, behind)
    checks(kit)


def test_main_process_killed_and_no_orphan_works_on(kit: Kit) -> None:
    (worker,) = kit.up()
    kit.plan("a")
    cut, behind = kit.add("a", "probe.nap", 60), kit.add("a", "probe.nap", 0)
    body = kit.wait_start(cut)
    pool = worker.pool()
    worker.kill()
    wait_until(lambda: not kit.living().intersection(pool), 20, "the pool processes end with their parent")
    interrupted_with_evidence(kit, body)
    kit.worker()
    start_refuses_until_decided(kit, "a", cut, behind)
    checks(kit)


def test_one_pool_process_killed_and_replaced(kit: Kit) -> None:
    (worker,) = kit.up(slots=2)
    kit.plan("a")
    kit.plan("b")
    cut, behind = kit.add("a", "probe.nap", 60), kit.add("a", "probe.nap", 0)
    body = kit.wait_start(cut)
    os.kill(body.pid, signal.SIGKILL)
    interrupted_with_evidence(kit, body)
    # Both slots are needed: the second head starts only if the pool is back to its size.
    kit.plan("c")
    release = kit.folder / "release"
    heads = [kit.add(plan, "probe.wait_for", str(release)) for plan in ("b", "c")]
    for head in heads:
        kit.wait_start(head)
    assert not kit.ends(heads[0]), "both run at once"
    release.touch()
    assert len(worker.pool()) == 2
    assert body.pid not in worker.pool()
    start_refuses_until_decided(kit, "a", cut, behind)
    checks(kit)


def test_feeder_killed_and_the_plan_goes_on(kit: Kit) -> None:
    kit.up()
    feeder = kit.services[0]
    kit.plan("a")
    items = [kit.add("a", "probe.nap", 2), kit.add("a", "probe.nap", 0), kit.add("a", "probe.nap", 60), kit.add("a", "probe.nap", 0)]
    kit.wait_start(items[0])
    feeder.kill()
    body = kit.wait_start(items[2])
    assert kit.outcomes(items[0]) == ["succeeded"], "a body does not hang on the feeder, and its worker feeds what follows"
    os.kill(body.pid, signal.SIGKILL)
    interrupted_with_evidence(kit, body)
    kit.feeder()
    start_refuses_until_decided(kit, "a", items[2], items[3])
    checks(kit)


def test_feeder_and_worker_killed_and_a_new_feeder_finds_it(kit: Kit) -> None:
    (worker,) = kit.up()
    feeder = kit.services[0]
    kit.plan("a")
    cut, behind = kit.add("a", "probe.nap", 60), kit.add("a", "probe.nap", 0)
    body = kit.wait_start(cut)
    feeder.kill()
    worker.kill_all()
    kit.feeder()
    interrupted_with_evidence(kit, body)
    kit.worker()
    start_refuses_until_decided(kit, "a", cut, behind)
    checks(kit)


def test_requeue_runs_again_at_most_max_attempts_times(kit: Kit) -> None:
    (worker,) = kit.up()
    kit.plan("a")
    item = kit.add("a", "probe.nap", 60, on_interrupt=OnInterrupt.REQUEUE, max_attempts=3)
    behind = kit.add("a", "probe.nap", 0)
    os.kill(kit.wait_start(item).pid, signal.SIGKILL)
    os.kill(kit.wait_start(item, number=2).pid, signal.SIGKILL)
    third = kit.wait_start(item, number=3)
    worker.kill_all()
    interrupted_with_evidence(kit, third)
    kit.worker()
    start_refuses_after_the_last(kit, item)
    assert not kit.starts(behind)
    assert [event.after["tries"] for event in kit.events("requeue")] == [1, 2]
    checks(kit)


def start_refuses_after_the_last(kit: Kit, item: int) -> None:
    wait_until(lambda: not kit.dispatches(item) or kit.dispatches(item)[0].ended_at, 15, "the lost session is closed")
    assert kit.state(item) is State.INTERRUPTED
    assert kit.outcomes(item) == ["interrupted"] * 3
    with kit.tx() as tx, pytest.raises(PlanBlocked, match=str(item)):
        plans.start(tx, "a", actor=ACTOR)
