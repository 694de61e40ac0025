"""C2, the whole stack: `relevo up` is told to stop the documented way, with a body in the middle."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest

from app import platform
from ordering.items import Edit
from ordering.model import State
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.cases.processes import Service
from tests.conftest import Scale
from workers import settings


@pytest.fixture
def stack(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> Kit:
    """The kit; this process has the settings that its `relevo up` has."""
    settings_of(monkeypatch, kit.environment())
    return kit


def settings_of(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    """Give this process the settings of that environment."""
    for name, value in environment.items():
        if name.startswith("RELEVO_"):
            monkeypatch.setenv(name, value)


def up(kit: Kit, **environment: str) -> Service:
    """`relevo up` in the foreground, and everything ready."""
    started = kit.command("up", **environment)

    def ready() -> bool:
        assert started.process.poll() is None, started.text()[-3000:]
        return platform.status(settings.load()).exit_code == 0

    wait_until(ready, 60, f"relevo up is ready: {started.text()[-3000:]}", pause=0.2)
    return started


def to_main(started: Service) -> None:
    started.term()


def ctrl_c(started: Service) -> None:
    os.killpg(started.pid, signal.SIGINT)


@pytest.mark.parametrize("stop", [to_main, ctrl_c])
def test_body_ends_and_nothing_is_left_over(stack: Kit, scale: Scale, stop: Callable[[Service], None]) -> None:
    started = up(stack)
    stack.plan("a", stop_grace=timedelta(seconds=60))
    release = stack.folder / "release"
    item, behind = stack.add("a", "probe.wait_for", str(release)), stack.add("a", "probe.nap", 0)
    stack.wait_start(item)
    stop(started)
    wait_until(lambda: "Stopping gracefully" in started.text(), 15, "the worker has heard it")
    time.sleep(scale.seconds(5, least=1))
    release.touch()
    assert started.wait(60) == 0
    assert not stack.living()
    assert stack.state(item) is State.SUCCEEDED
    assert not stack.starts(behind)
    stack.up()
    stack.wait_done()
    assert (len(stack.starts(item)), len(stack.starts(behind))) == (1, 1)
    checks(stack)


def test_longer_than_the_grace_time_is_cut_and_handled_once(stack: Kit) -> None:
    started = up(stack)
    stack.plan("a", stop_grace=timedelta(seconds=1))
    item = stack.add("a", "probe.nap", 60)
    stack.wait_start(item)
    started.term()
    assert started.wait(60) == 0
    assert not stack.living()
    cut = stack.item(item)
    assert cut.state is State.INTERRUPTED
    assert (cut.error or "").startswith("shutdown: ")
    stack.up()
    stack.retry(item, Edit(args=[0]))
    stack.wait_done()
    assert stack.outcomes(item) == ["interrupted", "succeeded"]
    checks(stack)


def test_power_is_lost_and_the_plan_goes_on(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """kill -9 of everything, the embedded servers too, in the middle of a plan: nothing is lost, what was cut is marked, the rest runs."""
    embedded = {"RELEVO_DATABASE_URL": "", "RELEVO_BROKER_URL": ""}
    settings_of(monkeypatch, kit.environment(**embedded))
    started = up(kit, **embedded)
    kit.move_to(*platform.urls(settings.load()))
    kit.plan("a")
    done, cut = kit.add("a", "probe.nap", 0), kit.add("a", "probe.nap", 60)
    rest = [kit.add("a", "probe.nap", 0) for _ in range(5)]
    kit.wait_start(cut)
    started.kill_all()
    wait_until(lambda: not kit.living(), 30, "the machine is dark")

    again = up(kit, **embedded)
    kit.move_to(*platform.urls(settings.load()))
    assert "process lost" in (kit.wait_state(cut, State.INTERRUPTED, seconds=20).error or "")
    kit.retry(cut, Edit(args=[0]))
    kit.wait_done()
    assert [len(kit.starts(item)) for item in (done, cut, *rest)] == [1, 2, 1, 1, 1, 1, 1]
    checks(kit)
    again.term()
    assert again.wait(60) == 0
    assert not kit.living()
