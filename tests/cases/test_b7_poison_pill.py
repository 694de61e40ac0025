"""B7: an item that kills its process every time ends after its attempts and harms nobody else."""

import signal

from ordering.model import OnInterrupt, State
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.conftest import Scale

PILLS = {
    "killed": ("probe.die", [int(signal.SIGKILL)]),
    "segfault": ("probe.die", [int(signal.SIGSEGV)]),
    "memory": ("probe.swell", [400]),
    "exit": ("probe.leave", [1]),
    "overrun": ("probe.overrun", []),
}


def test_poison_pills_beside_innocent_plans(kit: Kit, scale: Scale) -> None:
    attempts, innocents = 3, scale.rounds(40, least=5)
    (worker,) = kit.up(slots=3)
    pills, good = {}, []
    for name, (task, args) in PILLS.items():
        kit.plan(name)
        pills[name] = kit.add(name, task, *args, on_interrupt=OnInterrupt.REQUEUE, max_attempts=attempts)
        kit.add(name, "probe.nap", 0)
        kit.plan(f"beside-{name}")
        good += [kit.add(f"beside-{name}", "probe.nap", 0.05) for _ in range(innocents)]
    kit.wait_done(90, wanted=good)

    for name, item in pills.items():
        if name == "overrun":
            # A time limit is a failure, not an interruption: nobody requeues it behind a person's back in a serial plan.
            ended = kit.wait_state(item, State.FAILED, seconds=30)
            assert ended.attempts == 1
            assert "time limit" in (ended.error or "")
        else:
            wait_until(lambda item=item: kit.item(item).attempts == attempts, 60, f"{name} used up its attempts")  # type: ignore[misc]
            ended = kit.wait_state(item, State.INTERRUPTED)
            assert "process lost" in (ended.error or "")
            assert kit.outcomes(item) == ["interrupted"] * attempts
        assert ended.at_head
        assert len(kit.starts(item)) == ended.attempts
        assert kit.view(name).status == "halted"
    wait_until(lambda: len(worker.pool()) == 3, 30, "the pool is back to its size")
    assert {row.id for row in kit.sql("select id from relevo.item where state in ('failed', 'interrupted')")} == set(pills.values())
    assert kit.sql("select max(attempts) as most from relevo.item where id = any(:good)", good=good)[0].most == 1
    checks(kit)
