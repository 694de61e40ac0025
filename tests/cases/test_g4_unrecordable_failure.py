"""G4: however an error is made, its failure is recorded as readable text, counted once, and the process goes on."""

import pytest

from ordering import history, lines
from ordering.model import NewItem, State
from tests.cases import commandline
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.patience import Stopwatch

# Each way of `probe.raise_odd`, the recorded reason, and what the text must hold.
ODD = {
    "needs two": ("NeedsTwo", ["NeedsTwo: one and two"]),
    "holds a lock": ("ValueError", ["holds a lock", "unlocked _thread.lock"]),
    "unspeakable": ("Unspeakable", ["Unspeakable", "str() of the error raised RuntimeError"]),
    "20 MB": ("ValueError", ["ValueError: xxx", "characters left out"]),
    "recursion": ("ValueError", ["ValueError: deep down", "frames, the first and last"]),
    "group": ("ExceptionGroup", ["several (2 sub-exceptions)", "ValueError: first", "KeyError: 'second'"]),
    "SystemExit": ("SystemExit", ["SystemExit: 3"]),
    "KeyboardInterrupt": ("KeyboardInterrupt", ["KeyboardInterrupt"]),
}
READABLE = 25_000  # characters of a recorded error at the most
OPENS = 5.0  # seconds within which a person sees the failure


@both_brokers
@pytest.mark.timeout(180)
def test_recorded_whatever_it_is(kit: Kit) -> None:
    (worker,) = kit.up(workers=1, slots=2)
    size = len(worker.pool())
    failing = {}
    for number, name in enumerate(ODD):
        kit.plan(f"plan-{number}", start=False)
        failing[name] = kit.add_many(f"plan-{number}", [NewItem("probe.raise_odd", [name]), NewItem("probe.nap")])
    for number, (name, (reason, words)) in enumerate(ODD.items()):
        item, behind = failing[name]
        failed = kit.wait_state(item, State.FAILED, seconds=30)
        assert failed.error is not None
        assert len(failed.error) < READABLE
        for word in words:
            assert word in failed.error, f"{name}: {failed.error[:500]}"
        assert (failed.attempts, failed.tries, kit.outcomes(item)) == (1, 1, ["failed"])
        assert kit.view(f"plan-{number}").status == "halted"
        assert kit.state(behind) is State.WAITING
        with Stopwatch() as watch, kit.tx() as tx:
            told = history.history(tx, item)
            listed = lines.unresolved(tx, kit.view(f"plan-{number}").id)
        assert watch.seconds < OPENS
        assert told.attempts[0].reason == reason
        assert [line.id for line in listed] == [item]
    out, _ = commandline.call(kit, "show", str(failing["20 MB"][0]))
    assert "characters left out" in out
    assert len(out) < 3 * READABLE
    assert worker.process.poll() is None
    wait_until(lambda: len(worker.pool()) == size, 30, "the pool is back at its size")

    kit.plan("after")
    last = kit.add("after", "probe.nap")
    kit.wait_done(wanted=[last])
    assert len(kit.starts()) == len(ODD) + 1, "nothing came back to be tried again"
    checks(kit)
