"""What stands around every page: how many dead letters there are, the signals of the plans, and the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from ordering import clock, dead, views
from ordering.views import PlanView

MOST = 12  # plans in the rail


@dataclass(frozen=True)
class Frame:
    """Around a page; `now` is the database's clock."""

    now: datetime
    dead_letters: int | None
    plans: Sequence[PlanView]
    workers: int | None


EMPTY = Frame(datetime.fromtimestamp(0, UTC), None, (), None)


def read(tx: Connection) -> Frame:
    """The frame as it is now."""
    return Frame(
        now=clock.now(tx),
        dead_letters=dead.count(tx, dead.which(tx)),
        plans=views.page(tx, limit=MOST)[0],
        workers=views.live_sessions(tx),
    )
