"""The time line of an item: its bars, marks and bands, from attempts and steps as they are recorded."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from app.timeline import Drawn, TimeLine, timeline
from ordering.history import AttemptView, History, StepView
from ordering.model import Item, Outcome, State, StepKind

START = datetime(2030, 1, 31, 9, 0, tzinfo=UTC)
ITEM = Item(
    id=1, plan_id=1, plan="flows", position=Decimal(1), state=State.SUCCEEDED, at_head=False, task="provision", args=[], kwargs={},
    title="", kind="", key=None, entry=None, repairs=None, fact=None, not_before=None, on_interrupt=None, max_attempts=None, attempts=1,
    tries=1, replays=0, error=None, result=None, created_at=START, settled_at=None,
)  # fmt: skip


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def tried(number: int, begin: float, end: float | None, outcome: Outcome | None = Outcome.SUCCEEDED) -> AttemptView:
    ended = None if end is None else at(end)
    return AttemptView(number, at(begin), ended, outcome, True, "", None, 7, "w", "h", 42, None)


def step(number: int, begin: float, end: float, *, attempt: int = 1, done: bool = True, failures: int = 0) -> StepView:
    name = ("create", "charge", "invoice", "send")[number - 1]
    return StepView(number, name, StepKind.STEP, done, "1" if done else None, failures, None, attempt, at(begin), at(end), None)


def slept(number: int, begin: float, until: float, *, done: bool) -> StepView:
    return StepView(number, "trial", StepKind.SLEEP, done, None, 0, None, 1, at(begin), at(until) if done else None, at(until))


def drawn(state: State, now: float, attempts: list[AttemptView], steps: list[StepView], **fields: Any) -> TimeLine:
    item = replace(ITEM, state=state, **fields)
    found = timeline(History(item, at(now), None, attempts, steps, []))
    assert found is not None
    for line in found.lines:
        for bar in line.bars:
            assert 0 <= bar.x <= 100
            assert 0 <= bar.width <= 100 - bar.x + 0.5
    return found


def kinds(line: TimeLine, index: int) -> list[str]:
    return [bar.drawn.value for bar in line.lines[index].bars]


def test_an_item_that_has_not_begun_has_none() -> None:
    assert timeline(History(ITEM, at(0), None, [], [], [])) is None


def test_one_attempt_after_another_with_the_backoff_between_them() -> None:
    line = drawn(State.SUCCEEDED, 100, [tried(1, 0, 10, Outcome.FAILED), tried(2, 20, 40)], [])
    assert kinds(line, 0) == ["failed", "wait", "ok"]
    assert [(bar.x, bar.width) for bar in line.lines[0].bars] == [(0, 25), (25, 25), (50, 50)]
    assert (line.now, line.bands, line.worked) == (None, [], timedelta(seconds=30))


def test_a_cut_attempt_is_followed_by_a_band_and_results_are_reused() -> None:
    attempts = [tried(1, 0, 30, Outcome.INTERRUPTED), tried(2, 40, 60)]
    line = drawn(State.SUCCEEDED, 100, attempts, [step(1, 0, 20), step(2, 40, 60, attempt=2)])
    assert kinds(line, 0) == ["lost", "ok"]
    assert kinds(line, 1) == ["ok", "reused"]
    assert kinds(line, 2) == ["lost", "ok"]
    cut = line.lines[2].bars[0]
    assert (round(cut.x, 2), round(cut.width, 2)) == (33.33, 16.67)  # from the end of the step before it
    (band,) = line.bands
    assert (band.x, round(band.width, 2)) == (50, 16.67)
    assert round(line.lines[1].bars[1].x, 2) == 66.67


def test_a_step_that_failed_before_it_passed() -> None:
    attempts = [tried(1, 0, 10, Outcome.FAILED), tried(2, 20, 40)]
    line = drawn(State.SUCCEEDED, 100, attempts, [step(1, 0, 5), step(2, 20, 40, attempt=2, failures=1)])
    assert kinds(line, 2) == ["failed", "wait", "ok"]
    assert line.lines[2].took == timedelta(seconds=20)


def test_what_failed_outside_of_steps_is_laid_to_none() -> None:
    attempts = [tried(1, 0, 10, Outcome.FAILED), tried(2, 20, 40)]
    line = drawn(State.SUCCEEDED, 100, attempts, [step(1, 0, 5), step(2, 20, 40, attempt=2)])
    assert kinds(line, 2) == ["ok"]


def test_a_sleep_is_cut_short_and_now_lies_within_it() -> None:
    steps = [step(1, 0, 10), slept(2, 10, 1_209_610, done=False)]
    line = drawn(State.POSTPONED, 3600, [], steps, not_before=at(1_209_610))
    assert line.lines[2].status == "sleeping"
    (bar,) = line.lines[2].bars
    assert bar.drawn is Drawn.SLEEP
    assert round(bar.x + bar.width) == 100
    assert bar.cut is not None
    assert line.now is not None
    assert bar.x < line.now < bar.cut < 100
    assert len(line.cuts) == 1


def test_after_a_sleep_the_results_before_it_are_reused() -> None:
    steps = [step(1, 0, 10), slept(2, 10, 1000, done=True), step(3, 1000, 1010)]
    line = drawn(State.SUCCEEDED, 5000, [tried(1, 1000, 1010)], steps)
    assert kinds(line, 0) == ["ok", "ok"]
    assert kinds(line, 1) == ["ok", "reused"]
    assert kinds(line, 2) == ["sleep"]
    assert line.lines[2].status == "slept"


def test_what_runs_has_a_line_behind_its_last_step() -> None:
    line = drawn(State.RUNNING, 60, [tried(1, 0, None, None)], [step(1, 0, 20)])
    assert kinds(line, 0) == ["running"]
    assert (line.lines[2].status, line.lines[2].step, line.lines[2].took) == ("running", None, timedelta(seconds=40))
    assert line.now == 100


def test_a_backoff_ends_where_the_next_try_begins() -> None:
    line = drawn(State.WAITING, 15, [tried(1, 0, 10, Outcome.FAILED)], [], not_before=at(20))
    assert kinds(line, 0) == ["failed", "wait"]
    wait = line.lines[0].bars[1]
    assert (wait.x, wait.width) == (50, 50)
    assert line.now == 75


def test_a_bar_is_never_too_thin_to_see() -> None:
    line = drawn(State.SUCCEEDED, 100, [tried(1, 0, 0), tried(2, 99.999, 100)], [])
    assert all(bar.width >= 0.4 for bar in line.lines[0].bars)


def test_a_band_ends_where_a_body_that_slept_since_had_begun_again() -> None:
    steps = [step(1, 0, 10), step(2, 60, 80, attempt=2), step(3, 80, 90, attempt=2)]
    line = drawn(State.POSTPONED, 100, [tried(1, 0, 20, Outcome.INTERRUPTED)], steps, not_before=at(120))
    assert kinds(line, 0) == ["lost", "ok"]
    (band,) = line.bands
    assert round(line.lines[0].bars[1].x, 6) == round(band.x + band.width, 6)
    assert kinds(line, 1) == ["ok", "reused"]
