"""What stands around every page: the signals of the plans, who works, how many dead letters there are, and the database's clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sqlalchemy import Connection

from app import rail
from app.crews import Crew, crews
from app.figures import Shared
from app.rail import Row, Worst
from ordering import clock
from ordering.model import State
from ordering.workforce import Workforce


@dataclass(frozen=True)
class Frame:
    """Around a page; `now` is the database's clock. `workforce` is None where nobody could be asked, or not yet.

    `waiting` has how many items of each plan waited at the last look, some seconds ago; `plans` is how many plans there are.
    """

    now: datetime
    dead_letters: int = 0
    rows: Sequence[Row] = ()
    worst: Sequence[Worst] = ()
    plans: int = 0
    workforce: Workforce | None = None
    crews: Sequence[Crew] = ()
    waiting: Mapping[str, int] = field(default_factory=dict)


EMPTY = Frame(datetime.fromtimestamp(0, UTC))


def read(tx: Connection, shared: Shared, *, acted: bool) -> Frame:
    """The frame as it is now; its figures are those of the last look if that is not long ago. `acted` as in `Shared.of`."""
    now, figures = clock.now(tx), shared.of(acted=acted)
    if figures is None:
        return Frame(now)
    return Frame(
        now=now,
        dead_letters=figures.dead_letters,
        rows=rail.rows(figures),
        worst=rail.worst(figures),
        plans=len(figures.by_name),
        workforce=figures.workforce,
        crews=crews(figures.workforce.workers),
        waiting={name: each.items[State.WAITING] for name, each in figures.by_name.items()},
    )
