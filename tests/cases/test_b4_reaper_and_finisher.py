"""B4: the reaper and the finisher never both win."""

import random
import signal
import time

import pytest

from ordering import decision, reconcile
from ordering.errors import MayStillRun, NotAllowed
from ordering.model import OnInterrupt, State
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.conftest import Scale
from workers import process

END_SESSIONS = """
    select pg_terminate_backend(a.pid) from pg_stat_activity a
    where a.application_name like 'relevo session%' and a.datname = current_database()
"""


def test_stopped_reaped_and_continued(kit: Kit, scale: Scale) -> None:
    """A worker is stopped at a random moment and its session's connection ended, so that the reaper takes its lock; then it goes on."""
    rounds, seed = scale.rounds(200, least=10), random.randrange(10**6)
    chance = random.Random(seed)
    (worker,) = kit.up(slots=1)
    kit.plan("hold")
    kit.plan("requeue")
    for number in range(rounds):
        plan = chance.choice(["hold", "requeue"])
        body = chance.uniform(0.05, scale.seconds(6, least=0.6))
        item = kit.add(plan, "probe.nap", body, on_interrupt=OnInterrupt(plan))
        kit.wait_start(item)
        time.sleep(chance.uniform(0, body * 1.2))
        if chance.random() < 0.7:  # else the worker comes back while the reaper is at work
            worker.stop_and_go(signal.SIGSTOP)
        if chance.random() < 0.75:
            kit.sql(END_SESSIONS)
        for _ in range(3):
            reconcile.reconcile(kit.engine, process.alive)
        seen = kit.state(item)
        decided = seen is State.INTERRUPTED and chance.random() < 0.5
        if decided:
            # No second body while the first one lives; and a late result must not end what a person has decided.
            try:
                with pytest.raises(MayStillRun), kit.tx() as tx:
                    decision.retry(tx, item, actor=ACTOR)
                with kit.tx() as tx:
                    decision.skip(tx, item, actor=ACTOR)
            except NotAllowed:
                decided = False  # the process has taken its item back in the moment between
        worker.stop_and_go(signal.SIGCONT)
        told = f"round {number}, seed {seed}, plan {plan}, seen {seen}, decided {decided}"
        wanted = State.SKIPPED if decided else State.SUCCEEDED
        wait_until(lambda item=item, wanted=wanted: kit.state(item) is wanted, 30, told)  # type: ignore[misc]
        if decided:
            assert kit.outcomes(item) == ["interrupted"], told
        else:
            assert kit.outcomes(item) == ["succeeded"], f"proved alive, so nothing is requeued: {told}"
    assert kit.sql("select count(*) from relevo.event where action = 'requeue'")[0][0] == 0
    checks(kit)
