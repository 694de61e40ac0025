"""An item's attempts and steps as lines of bars over one time axis, worked out from what is recorded of them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from app.axis import Axis, Label, Span, axis, labels
from ordering.history import History, StepView
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


@dataclass(frozen=True)
class Tried:
    """Something ran from `began` to `ended` (None: it runs). `slept`: it ended by falling asleep, and is no attempt that has ended."""

    number: int
    began: datetime
    ended: datetime | None
    outcome: Outcome | None
    slept: bool = False


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
    end = axis.x(b)
    begin = min(axis.x(now) + 4 if a < now < b else axis.x(a), end - 1)
    return begin + (end - begin) * 0.4  # a label may stand at the end


def timeline(history: History) -> TimeLine | None:
    """The lines of an item that has begun; None of one that has not."""
    now = history.now
    attempts = _tried(history)
    spans = [(each.began, each.ended or now) for each in attempts]
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
    drawing.resumes = _resumes(attempts, drawing.axis)
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


def _tried(history: History) -> list[Tried]:
    """What was tried, in its order: the attempts, and what ran of one before it fell asleep, of which only its steps tell."""
    found = [Tried(each.number, each.started_at, each.ended_at, each.outcome) for each in history.attempts]
    for step in history.steps:
        if step.kind is StepKind.SLEEP or step.ended_at is None:
            continue
        known = next((each for each in found if each.number == step.attempt and each.began <= step.started_at), None)
        if known is not None and (known.slept is False or _awake(history, known, step)):
            if known.slept and known.ended is not None:
                found[found.index(known)] = replace(known, ended=max(known.ended, step.ended_at))
            continue
        found.append(Tried(step.attempt, step.started_at, step.ended_at, Outcome.SUCCEEDED, slept=True))
    return sorted(found, key=lambda each: (each.began, each.number))


def _awake(history: History, known: Tried, step: StepView) -> bool:
    """Whether no sleep lies between what is known to have run and the step."""
    return not any(each.kind is StepKind.SLEEP and known.began <= each.started_at < step.started_at for each in history.steps)


def _asleep_until(step: StepView, now: datetime) -> datetime:
    return step.ended_at or step.wake_at or now


ENDED = {Outcome.SUCCEEDED: Drawn.OK, Outcome.FAILED: Drawn.FAILED, Outcome.INTERRUPTED: Drawn.LOST, None: Drawn.RUNNING}


def _whole(drawing: _Drawing, attempts: Sequence[Tried]) -> Line:
    """The attempts one behind the other, with what lies between two of them."""
    now, bars = drawing.history.now, []
    for index, each in enumerate(attempts):
        if index and attempts[index - 1].outcome is Outcome.FAILED:
            bars.append(drawing.bar(Drawn.WAIT, attempts[index - 1].ended or now, each.began))
        bars.append(drawing.bar(ENDED[each.outcome], each.began, each.ended or now))
    item = drawing.history.item
    last = attempts[-1] if attempts else None
    if item.state is State.WAITING and last is not None and last.outcome is Outcome.FAILED:
        bars.append(drawing.bar(Drawn.WAIT, last.ended or now, item.not_before or now))
    took = sum((((each.ended or now) - each.began) for each in attempts), timedelta())
    return Line(None, None, item.state, bars, took)


def _step(drawing: _Drawing, attempts: Sequence[Tried], step: StepView) -> Line:
    now = drawing.history.now
    if step.kind is StepKind.SLEEP:
        end = _asleep_until(step, now)
        return Line(
            step.name, step, "slept" if step.done else "sleeping", [drawing.bar(Drawn.SLEEP, step.started_at, end)], end - step.started_at
        )
    bars, before = [], [each for each in drawing.history.steps if each.number < step.number]
    for each in attempts:
        # An attempt that ended at this step: those before it were done by then, and this one was tried again later.
        if each.ended is None or each.slept or each.number >= step.attempt or any(other.attempt > each.number for other in before):
            continue
        began = max([each.began, *(other.ended_at for other in before if other.attempt == each.number and other.ended_at)])
        if each.outcome is Outcome.INTERRUPTED:
            bars.append(drawing.bar(Drawn.LOST, began, each.ended))
        elif each.outcome is Outcome.FAILED and step.failures:
            bars.append(drawing.bar(Drawn.FAILED, began, each.ended))
            again = next((other.began for other in attempts if other.number > each.number), None)
            if again is not None:
                bars.append(drawing.bar(Drawn.WAIT, each.ended, again))
    failed = not step.done or step.error is not None
    end = step.ended_at or now
    bars.append(drawing.bar(Drawn.FAILED if failed else Drawn.OK, step.started_at, end))
    if step.done:
        bars += [drawing.mark(Drawn.REUSED, at) for at in drawing.resumes if at >= end]
    return Line(step.name, step, "failed" if failed else "succeeded", bars, end - step.started_at)


def _resumes(attempts: Sequence[Tried], axis: Axis) -> list[datetime]:
    """When the body began again and was handed stored results; of two that fall together on the axis, one."""
    kept: list[datetime] = []
    for each in attempts:
        if not kept or axis.x(each.began) - axis.x(kept[-1]) > 1.5:
            kept.append(each.began)
    return kept


def _behind(drawing: _Drawing, attempts: Sequence[Tried]) -> Line | None:
    """What the running body is at, behind its last recorded step; its name is known when it ends."""
    history = drawing.history
    if history.item.state is not State.RUNNING or not history.steps or not attempts:
        return None
    began = max(each for each in (attempts[-1].began, history.steps[-1].ended_at) if each is not None)
    return Line(None, None, "running", [drawing.bar(Drawn.RUNNING, began, history.now)], history.now - began)


def _bands(drawing: _Drawing, attempts: Sequence[Tried]) -> list[Bar]:
    """From each cut to the next attempt, or to now: no worker had it."""
    found = []
    for index, each in enumerate(attempts):
        if each.outcome is Outcome.INTERRUPTED and each.ended is not None:
            following = attempts[index + 1].began if index + 1 < len(attempts) else None
            end = following or (drawing.history.now if drawing.history.item.state not in SETTLED else None)
            if end is not None:
                x = drawing.axis.x(each.ended)
                found.append(Bar(Drawn.LOST, x, max(0.0, drawing.axis.x(end) - x)))
    return found
