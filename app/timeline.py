"""An item's attempts and steps as lines of bars over one time axis, worked out from what is recorded of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from app.axis import Axis, Label, Span, axis, labels
from ordering.history import AttemptView, History, StepView
from ordering.model import SETTLED, Outcome, State, StepKind

THIN = 0.4  # percent: no bar is thinner, or nobody would see it


class Drawn(StrEnum):
    """What a bar or a mark stands for."""

    OK = "ok"
    FAILED = "failed"
    LOST = "lost"
    RUNNING = "running"
    SLEEP = "sleep"
    WAIT = "wait"
    REUSED = "reused"


@dataclass(frozen=True)
class Bar:
    """From `x`, `width` wide, both in percent; a mark has no width. `cut` is where the axis is cut within it."""

    drawn: Drawn
    x: float
    width: float = 0.0
    cut: float | None = None


@dataclass(frozen=True)
class Line:
    """One line: the attempts as a whole (`step` and `name` None), a step, or what runs behind the last one (`step` None)."""

    name: str | None
    step: StepView | None
    status: str
    bars: Sequence[Bar]
    took: timedelta | None = None


@dataclass(frozen=True)
class TimeLine:
    """Lines over one axis. `now` is where now is, None once nothing is open; `bands`: when no worker had it after a cut."""

    lines: Sequence[Line]
    labels: Sequence[Label]
    cuts: Sequence[float]
    now: float | None
    bands: Sequence[Bar]
    begin: datetime
    end: datetime
    worked: timedelta


@dataclass
class _Drawing:
    history: History
    axis: Axis
    resumes: Sequence[datetime] = field(default_factory=list)

    def bar(self, drawn: Drawn, begin: datetime, end: datetime) -> Bar:
        x = self.axis.x(begin)
        width = self.axis.x(end) - x
        if drawn in (Drawn.OK, Drawn.FAILED, Drawn.LOST, Drawn.RUNNING) and width < THIN:
            width = THIN
            x = min(x, 100 - THIN)
        return Bar(drawn, x, width, self._cut(begin, end) if drawn is Drawn.SLEEP else None)

    def _cut(self, begin: datetime, end: datetime) -> float | None:
        for a, b in self.axis.cuts:
            if begin < b and a < end:
                return _middle(self.axis, (a, b), self.history.now)
        return None

    def mark(self, drawn: Drawn, at: datetime) -> Bar:
        return Bar(drawn, self.axis.x(at))


def _middle(axis: Axis, cut: Span, now: datetime) -> float:
    a, b = cut
    begin = axis.x(now) + 4 if a < now < b else axis.x(a)
    return (min(begin, axis.x(b) - 1) + axis.x(b)) / 2


def timeline(history: History) -> TimeLine | None:
    """The lines of an item that has begun; None of one that has not."""
    now = history.now
    attempts = [each for each in history.attempts if each.started_at is not None]
    spans = [(each.started_at, each.ended_at or now) for each in attempts]
    worked = sum(((b - a) for a, b in spans), timedelta())
    spans += [(each.started_at, each.ended_at or now) for each in history.steps if each.kind is StepKind.STEP]
    if not spans:
        return None
    begin = min(a for a, _ in spans)
    ends = [b for _, b in spans] + [_asleep_until(each, now) for each in history.steps if each.kind is StepKind.SLEEP]
    is_open = history.item.state not in SETTLED
    if is_open:
        ends.append(now)
        if history.item.state in (State.WAITING, State.POSTPONED) and history.item.not_before is not None:
            ends.append(history.item.not_before)
    drawing = _Drawing(history, axis(spans, begin, max(ends)))
    drawing.resumes = _resumes(history, drawing.axis)
    shown = [_whole(drawing, attempts), *(_step(drawing, attempts, each) for each in history.steps)]
    behind = _behind(drawing, attempts)
    return TimeLine(
        lines=[*shown, behind] if behind else shown,
        labels=labels(drawing.axis, now if is_open else None),
        cuts=[_middle(drawing.axis, each, now) for each in drawing.axis.cuts],
        now=drawing.axis.x(now) if is_open else None,
        bands=_bands(drawing, attempts),
        begin=drawing.axis.begin,
        end=drawing.axis.end,
        worked=worked,
    )


def _asleep_until(step: StepView, now: datetime) -> datetime:
    return step.ended_at or step.wake_at or now


ENDED = {Outcome.SUCCEEDED: Drawn.OK, Outcome.FAILED: Drawn.FAILED, Outcome.INTERRUPTED: Drawn.LOST, None: Drawn.RUNNING}


def _whole(drawing: _Drawing, attempts: Sequence[AttemptView]) -> Line:
    """The attempts one behind the other, with what lies between two of them."""
    now, bars = drawing.history.now, []
    for index, each in enumerate(attempts):
        end = each.ended_at or now
        if index and attempts[index - 1].outcome is Outcome.FAILED:
            bars.append(drawing.bar(Drawn.WAIT, attempts[index - 1].ended_at or now, each.started_at))
        bars.append(drawing.bar(ENDED[each.outcome], each.started_at, end))
    item = drawing.history.item
    last = attempts[-1] if attempts else None
    if item.state is State.WAITING and last is not None and last.outcome is Outcome.FAILED:
        bars.append(drawing.bar(Drawn.WAIT, last.ended_at or now, item.not_before or now))
    took = sum((((each.ended_at or now) - each.started_at) for each in attempts), timedelta())
    return Line(None, None, item.state, bars, took)


def _step(drawing: _Drawing, attempts: Sequence[AttemptView], step: StepView) -> Line:
    now = drawing.history.now
    if step.kind is StepKind.SLEEP:
        end = _asleep_until(step, now)
        return Line(
            step.name, step, "slept" if step.done else "sleeping", [drawing.bar(Drawn.SLEEP, step.started_at, end)], end - step.started_at
        )
    bars, before = [], [each for each in drawing.history.steps if each.number < step.number]
    for each in attempts:
        # An attempt that ended at this step: those before it were done by then, and this one was tried again later.
        if each.ended_at is None or each.number >= step.attempt or any(other.attempt > each.number for other in before):
            continue
        began = max([each.started_at, *(other.ended_at for other in before if other.attempt == each.number and other.ended_at)])
        if each.outcome is Outcome.INTERRUPTED:
            bars.append(drawing.bar(Drawn.LOST, began, each.ended_at))
        elif each.outcome is Outcome.FAILED and step.failures:
            bars.append(drawing.bar(Drawn.FAILED, began, each.ended_at))
            again = next((other.started_at for other in attempts if other.number > each.number), None)
            if again is not None:
                bars.append(drawing.bar(Drawn.WAIT, each.ended_at, again))
    failed = not step.done or step.error is not None
    end = step.ended_at or now
    bars.append(drawing.bar(Drawn.FAILED if failed else Drawn.OK, step.started_at, end))
    if step.done:
        bars += [drawing.mark(Drawn.REUSED, at) for at in drawing.resumes if at > end]
    return Line(step.name, step, "failed" if failed else "succeeded", bars, end - step.started_at)


def _resumes(history: History, axis: Axis) -> list[datetime]:
    """When the body began again and was handed stored results; of two that fall together on the axis, one."""
    starts = [each.started_at for each in history.attempts]
    # An attempt that slept is one attempt: its row has the time of its last beginning, and the sleeps before tell of the others.
    starts += [
        each.ended_at for each in history.steps
        if each.kind is StepKind.SLEEP and each.ended_at is not None and any(other.number > each.number for other in history.steps)
    ]  # fmt: skip
    kept: list[datetime] = []
    for at in sorted(starts):
        if not kept or axis.x(at) - axis.x(kept[-1]) > 1.5:
            kept.append(at)
    return kept


def _behind(drawing: _Drawing, attempts: Sequence[AttemptView]) -> Line | None:
    """What the running body is at, behind its last recorded step; its name is known when it ends."""
    history = drawing.history
    if history.item.state is not State.RUNNING or not history.steps or not attempts:
        return None
    began = max(each for each in (attempts[-1].started_at, history.steps[-1].ended_at) if each is not None)
    return Line(None, None, "running", [drawing.bar(Drawn.RUNNING, began, history.now)], history.now - began)


def _bands(drawing: _Drawing, attempts: Sequence[AttemptView]) -> list[Bar]:
    """From each cut to the next attempt, or to now: no worker had it."""
    found = []
    for index, each in enumerate(attempts):
        if each.outcome is Outcome.INTERRUPTED and each.ended_at is not None:
            following = attempts[index + 1].started_at if index + 1 < len(attempts) else None
            end = following or (drawing.history.now if drawing.history.item.state not in SETTLED else None)
            if end is not None:
                x = drawing.axis.x(each.ended_at)
                found.append(Bar(Drawn.LOST, x, max(0.0, drawing.axis.x(end) - x)))
    return found
