"""B4: the reaper and the finisher never both win."""

import random
import signal
import time

from ordering import reconcile
from ordering.errors import NotAllowed
from ordering.items import Edit
from ordering.model import OnInterrupt, State
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
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
            # The verdict about the first attempt must not end the second one, and its late result must not either.
            try:
                kit.retry(item, Edit(args=[0.3]))
            except NotAllowed:
                decided = False  # the process has taken its item back in the moment between
        worker.stop_and_go(signal.SIGCONT)
        told = f"round {number}, seed {seed}, plan {plan}, seen {seen}, decided {decided}"
        wait_until(lambda item=item: kit.state(item) is State.SUCCEEDED, 30, told)  # type: ignore[misc]
        if decided:
            assert kit.outcomes(item)[0] == "interrupted", told
        else:
            assert kit.outcomes(item) == ["succeeded"], f"proved alive, so nothing is requeued: {told}"
    assert kit.sql("select count(*) from relevo.event where action = 'requeue'")[0][0] == 0
    checks(kit)
