"""The rail beside every page: the four signals of the plans that are worth a look, the worst of each, and who works."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from app import wording
from app.figures import Figures
from app.language import gettext as _
from app.sparks import Spark, spark
from ordering.samples import Past
from ordering.signals import Signals


@dataclass(frozen=True)
class Threshold:
    """From where on a signal is worth a look (`warn`), and from where on somebody should come."""

    warn: float
    critical: float


# Of streams. In a serial plan items wait for days as they are meant to; there only what holds it is worth a look.
DEPTH = Threshold(2_000, 20_000)
OLDEST = Threshold(300, 1_800)  # seconds
RETRY = Threshold(0.1, 0.5)
DEAD = Threshold(1, 10)
NONE = "\N{EN DASH}"
NO_PAST = Past(datetime.fromtimestamp(0, UTC), (), (), (), ())


@dataclass(frozen=True)
class Cell:
    """One signal: the number in words, whether it is `zero`, `level` is warn, critical or nothing, and its last hour."""

    word: str
    zero: bool
    level: str
    spark: Spark


@dataclass(frozen=True)
class Row:
    """The signals of one plan. `held`: for how long it has been held up, in words."""

    plan: str
    stream: bool
    held: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Worst:
    """The worst value of one signal, and the plan that has it."""

    name: str
    cell: Cell
    plan: str


def rows(figures: Figures) -> list[Row]:
    """A row for each of the plans that are worth a look first."""
    return [_row(each, figures.past.get(each.plan)) for each in figures.first]


def worst(figures: Figures) -> list[Worst]:
    """The worst of each signal over all plans, for narrow screens."""
    every = list(figures.by_name.values())
    if not every:
        return []
    streams = [each for each in every if each.concurrency > 1] or every
    chosen = (
        (_("Depth"), 0, max(streams, key=lambda each: each.depth)),
        (_("Oldest"), 1, max(streams, key=lambda each: each.oldest_age)),
        (_("Retries"), 2, max(every, key=lambda each: each.retry_ratio)),
        (_("Unresolved"), 3, max(every, key=lambda each: each.dead_letters)),
    )
    return [Worst(name, _row(each, None).cells[at], each.plan) for name, at, each in chosen]


def _row(each: Signals, past: Past | None) -> Row:
    stream, age = each.concurrency > 1, each.oldest_age.total_seconds()
    hour = past or NO_PAST
    cells = (
        _cell(each.depth, wording.number(each.depth), DEPTH if stream else None, hour.depth),
        _cell(age, wording.length(age) if age else NONE, OLDEST if stream else None, hour.oldest_age),
        _cell(each.retry_ratio, _percent(each.retry_ratio), RETRY, hour.retry_ratio),
        _cell(each.dead_letters, wording.number(each.dead_letters), DEAD, hour.dead_letters, held=bool(each.blocked)),
    )
    return Row(each.plan, stream, wording.length(each.blocked.total_seconds()) if each.blocked else "", cells)


def _cell(value: float, word: str, threshold: Threshold | None, past: Sequence[float | None], *, held: bool = False) -> Cell:
    level = ""
    if threshold is not None and value >= threshold.warn:
        level = "crit" if held or value >= threshold.critical else "warn"
    drawn = spark([*past, value], None if threshold is None else threshold.warn) if past else Spark()
    return Cell(word, not value, level, drawn)


def _percent(ratio: float) -> str:
    return f"{wording.number(round(100 * ratio, 1))} %"
