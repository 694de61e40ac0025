"""Workflows of the cases. Each step notes outside the product that it runs."""

import os
import signal
from typing import Any

from tests.cases.probe_tasks import body, note
from tests.heart.step_tasks import effect
from workers import celery

STEPS = 5


def part(task: Any, number: int, *, fatal: bool = False) -> int:
    """Have an effect, then be killed before anybody hears of it."""
    note(task, f"step {number}")
    if fatal:
        die()
    return number * 10


def die() -> None:
    """kill -9 of the own process."""
    os.kill(os.getpid(), signal.SIGKILL)


@celery.task(bind=True, name="workflow.killed", on_interrupt="requeue")
def killed(self: Any, step: int, moment: str) -> list[int]:
    """Five steps; the process is killed before, inside or after the given one, the first time."""
    given = []
    with body(self):
        for number in range(1, STEPS + 1):
            fatal = number == step and self.request.claimed.attempt == 1
            if fatal and moment == "before":
                die()
            given.append(self.step(f"step {number}", part, self, number, fatal=fatal and moment == "inside"))
            if fatal and moment == "after":
                die()
    return given


@celery.task(bind=True, name="workflow.sleeper")
def sleeper(self: Any, seconds: float) -> int:
    """A step, a sleep, a step."""
    first: int = self.step("first", part, self, 1)
    self.sleep("night", seconds=seconds)
    second: int = self.step("second", part, self, 2)
    return first + second


@celery.task(bind=True, name="workflow.typed", on_interrupt="requeue")
def typed(self: Any) -> list[str]:
    """How a step's result looks fresh, before a kill, and remembered, after it."""
    with body(self):
        shown = repr(self.step("typed", effect, self, "typed", "typed"))
        fresh = self.step("fresh", lambda: shown)
        if self.request.claimed.attempt == 1:
            die()
    return [fresh, shown]
