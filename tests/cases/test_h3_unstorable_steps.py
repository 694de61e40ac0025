"""H3: a step's result or error that cannot be stored: a clear failure there, its effect never repeated, types kept, listings quick."""

import os
import signal

import pytest

from ordering import views
from ordering.model import OnInterrupt, State
from tests.cases.checks import checks
from tests.cases.kit import Kit
from tests.patience import Stopwatch

KINDS = {
    "generator": "generator is not JSON",
    "file": "TextIOWrapper",
    "lambda": "function is not JSON",
    "large": "50000002 bytes",
    "set": "set",
}


MISSED = 40.0  # seconds: a message may have gone into the pipe of a process that is being killed, and is missed after 10


@pytest.fixture
def up(kit: Kit) -> Kit:
    kit.feeder(ready=False)
    catalogue = kit.catalogue(imports=("tests.cases.probe_tasks", "tests.cases.workflow_tasks", "tests.heart.step_tasks"), name="odd.toml")
    kit.worker(2, RELEVO_CATALOGUE=str(catalogue))
    return kit


def ran(kit: Kit, item: int) -> list[str]:
    return [note.what for note in kit.notes(item) if note.what not in ("start", "end")]


def test_results_that_cannot_be_stored(up: Kit) -> None:
    items = {}
    for kind in KINDS:
        up.plan(kind)
        lines = [["step", "first"], ["step", "odd", {"unstorable": kind}], ["step", "behind"]]
        items[kind] = up.add(kind, "heart.script", lines)
    for number in (1, 2):
        for kind, item in items.items():
            failed = up.wait_state(item, State.FAILED)
            assert failed.attempts == number
            assert failed.error is not None
            assert failed.error.startswith("Step 2 'odd' has run, but its result cannot be stored: ")
            assert KINDS[kind] in failed.error
            assert ran(up, item) == ["first", "odd"]
        if number == 1:
            # A resume after everything that knew of it is gone.
            for pid in up.services[-1].pool():
                os.kill(pid, signal.SIGKILL)
            for item in items.values():
                up.retry(item)
                up.wait_state(item, State.FAILED, seconds=MISSED)
    with Stopwatch() as watch:
        with up.tx() as tx:
            assert sum(plan.unresolved for plan in views.plans(tx)) == len(KINDS)
        assert all(len(up.history(item).steps) == 2 for item in items.values())
    assert watch.seconds < 5
    checks(up)


def test_an_error_that_cannot_be_stored(up: Kit) -> None:
    up.plan("a")
    item = up.add("a", "heart.script", [["step", "first"], ["step", "odd", {"raises": "wild"}]])
    failed = up.wait_state(item, State.FAILED)
    assert (failed.error or "").startswith("Wild: (str() of the error raised LookupError)")
    os.kill(up.services[-1].pool()[0], signal.SIGKILL)
    up.retry(item)
    up.wait_state(item, State.FAILED, seconds=MISSED)
    assert ran(up, item)[:2] == ["first", "odd"]
    assert ran(up, item).count("first") == 1
    checks(up)


def test_types_stay_the_same_over_a_kill(up: Kit) -> None:
    up.plan("a")
    item = up.add("a", "workflow.typed", on_interrupt=OnInterrupt.REQUEUE)
    fresh, remembered = up.wait_state(item, State.SUCCEEDED).result
    assert up.outcomes(item) == ["interrupted", "succeeded"]
    assert fresh == remembered
    for part in ("datetime.datetime(2030", "UUID('", "b'\\xff\\x00'", "Decimal('1.10')", "1e+22"):
        assert part in fresh
    assert ran(up, item).count("typed") == 1
    checks(up)
