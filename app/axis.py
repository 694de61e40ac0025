"""A time axis in percent: what was worked on is drawn to scale, and long times in which nothing happened are cut short. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

Span = tuple[datetime, datetime]
CUT_SHARE = 0.6  # a pause longer than this part of what was worked is cut
CUT_LEAST = timedelta(seconds=20)  # shorter ones never are
CUT_WIDTH, ALL_CUTS = 16.0, 52.0  # percent of one cut, and of all together
FINE = timedelta(minutes=20)  # axes that are shorter have seconds
APART = 11.0  # percent between two labels
NICE = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600,
    43200, 86400, 172800, 604800, 2592000, 31536000,
)  # fmt: skip


@dataclass(frozen=True)
class Label:
    """What stands at `x` percent: a time in UTC, as a clock says it, or `now`."""

    x: float
    at: datetime
    words: str
    anchor: str
    now: bool = False


@dataclass(frozen=True)
class Axis:
    """From `begin` to `end`; `knots` are pairs of an instant and its percent, rising, straight in between. `cuts` are the pauses cut."""

    begin: datetime
    end: datetime
    knots: Sequence[tuple[datetime, float]]
    cuts: Sequence[Span]

    def x(self, at: datetime) -> float:
        """Where the instant is, in percent from 0 to 100."""
        if at <= self.begin:
            return 0.0
        if at >= self.end:
            return 100.0
        index = bisect_right([instant for instant, _ in self.knots], at)
        (left, low), (right, high) = self.knots[index - 1], self.knots[index]
        return low + (high - low) * ((at - left) / (right - left))


def axis(busy: Iterable[Span], begin: datetime, end: datetime) -> Axis:
    """The axis from `begin` to `end` in which `busy` are the times that somebody worked."""
    end = max(end, begin + timedelta(milliseconds=1))
    spans = _merged([*((max(a, begin), min(b, end)) for a, b in busy if b >= begin and a <= end), (begin, begin), (end, end)])
    pauses = [(left[1], right[0]) for left, right in pairwise(spans)]
    worked = sum(((b - a) for a, b in spans), timedelta())
    shortest = max(CUT_LEAST, worked * CUT_SHARE)
    cuts = [(a, b) for a, b in pauses if b - a > shortest]
    cut = min(CUT_WIDTH, ALL_CUTS / len(cuts)) if cuts else 0.0
    to_scale = (end - begin) - sum(((b - a) for a, b in cuts), timedelta())
    left = 100.0 - cut * len(cuts) if to_scale else 0.0
    if not to_scale and cuts:
        cut = 100.0 / len(cuts)
    knots, x, at = [(begin, 0.0)], 0.0, begin
    for a, b in cuts:
        if a > at:
            x += left * ((a - at) / to_scale)
            knots.append((a, x))
        x += cut
        knots.append((b, x))
        at = b
    if end > at:
        knots.append((end, 100.0))
    return Axis(begin, end, knots, cuts)


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for a, b in sorted(spans):
        if merged and a <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(b, merged[-1][1]))
        else:
            merged.append((a, b))
    return merged


def labels(axis: Axis, now: datetime | None) -> list[Label]:
    """Labels that do not overlap: the beginning, `now`, where a cut ends, the end, and round times between them."""
    wanted = [(axis.begin, False), *([(now, True)] if now is not None else []), (axis.end, False), *((b, False) for _, b in axis.cuts)]
    wanted += [(at, False) for at in _round(axis)]
    placed: list[Label] = []
    for at, is_now in wanted:
        x = axis.x(at)
        if all(abs(x - each.x) >= APART for each in placed):
            anchor = "start" if x < 4 else "end" if x > 96 else "middle"
            placed.append(Label(x, at, "", anchor, is_now))
    placed.sort(key=lambda each: each.x)
    return _written(placed, axis)


def _written(placed: Sequence[Label], axis: Axis) -> list[Label]:
    """The labels with their times: in seconds where minutes do not tell two apart; one that says what another says is left out."""
    whole = axis.end - axis.begin
    rough = [clock(each.at, whole, axis.begin) for each in placed if not each.now]
    if whole >= FINE and len(set(rough)) < len(rough):
        whole = FINE - timedelta(seconds=1)
    found: list[Label] = []
    for each in placed:
        words = clock(each.at, whole, axis.begin)
        if each.now or not any(words == other.words for other in found):
            found.append(replace(each, words=words))
    return found


def _round(axis: Axis) -> list[datetime]:
    to_scale = (axis.end - axis.begin) - sum(((b - a) for a, b in axis.cuts), timedelta())
    step = next((each for each in NICE if each * 7 >= to_scale.total_seconds()), NICE[-1])
    found: list[datetime] = []
    at = axis.begin
    for a, b in [*axis.cuts, (axis.end, axis.end)]:
        number = int(at.timestamp() / step) + 1
        while len(found) < 50 and number * step < a.timestamp():
            found.append(datetime.fromtimestamp(number * step, UTC))
            number += 1
        at = b
    return found


def clock(at: datetime, whole: timedelta, begin: datetime) -> str:
    """The time of `at` in UTC, as finely as an axis of this length needs it; with the day where it is another one."""
    at, begin = at.astimezone(UTC), begin.astimezone(UTC)
    if whole < timedelta(seconds=5):
        written = f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"
    else:
        written = f"{at:%H:%M:%S}" if whole < FINE else f"{at:%H:%M}"
    return written if at.date() == begin.date() else f"{at:%m-%d} {written[:5]}"
