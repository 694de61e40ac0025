"""Sparklines: a plan's last hour as one small drawing of sixteen points, as the attributes of an SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

POINTS = 16
WIDTH, HEIGHT, MARGIN = 48.0, 16.0, 1.5


@dataclass(frozen=True)
class Spark:
    """Paths of one drawing of WIDTH by HEIGHT: the line, the area under it, the threshold, what lies above it; and where the line ends.

    All of them are empty, and `end` None, where there are not two points to draw.
    """

    line: str = ""
    area: str = ""
    threshold: str = ""
    over: str = ""
    end: tuple[float, float] | None = None


def points(values: Sequence[float | None]) -> list[float | None]:
    """Sixteen values of many: the largest of each part, so that no peak is lost; None where a part has none."""
    found: list[float | None] = []
    for at in range(POINTS):
        part = values[at * len(values) // POINTS : (at + 1) * len(values) // POINTS]
        found.append(max((each for each in part if each is not None), default=None))
    return found


def spark(values: Sequence[float | None], threshold: float | None = None) -> Spark:
    """The drawing of these values. The threshold, if there is one, is always in it."""
    chosen = points(values)
    known = [each for each in chosen if each is not None]
    if len(known) < 2:
        return Spark()
    top = max(*known, threshold or 0.0, 1e-9)
    step = (WIDTH - 1) / (POINTS - 1)
    at = [None if each is None else (0.5 + step * place, _height(each, top)) for place, each in enumerate(chosen)]
    line = _path(at)
    high = [
        spot if each is not None and threshold is not None and each > threshold else None for spot, each in zip(at, chosen, strict=True)
    ]
    first, last = next(each for each in at if each), next(each for each in reversed(at) if each)
    return Spark(
        line=line,
        area=f"{_path([each for each in at if each])}L{last[0]:.1f} {HEIGHT:g}L{first[0]:.1f} {HEIGHT:g}z" if all(at) else "",
        threshold="" if threshold is None else f"M0 {_height(threshold, top):.1f}H{WIDTH:g}",
        over=_path(high),
        end=last,
    )


def _height(value: float, top: float) -> float:
    return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN - 1) * max(0.0, value) / top


def _path(spots: Sequence[tuple[float, float] | None]) -> str:
    """The line through the spots, broken where one is missing."""
    written, joined = [], False
    for spot in spots:
        if spot is not None:
            written.append(f"{'L' if joined else 'M'}{spot[0]:.1f} {spot[1]:.1f}")
        joined = spot is not None
    return "".join(written)
