"""What a feeder does about schedules each second: a locked plan or a broken schedule holds up no other."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from sqlalchemy.exc import DBAPIError

from ordering import db, tick
from ordering.errors import RelevoError
from ordering.tick import DueSchedule
from workers.feeding import Transact

logger = logging.getLogger(__name__)
CHANGED = "Schedules that had counted on other times for their next ticks (%d; the clock was set back, or time zones have other rules): %s"
NAMED = 10  # of them, at the most


class Ticker:
    """Ticks the due schedules; what is wrong with one is logged once, and shown by `relevo schedule list`."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}
        self._latest = datetime.max.replace(tzinfo=UTC)  # the database's clock, as it was last seen

    def tick(self, transact: Transact) -> None:
        """Tick what is due, each schedule in a transaction of its own.

        At the first look, and where the clock was set back since the last one, what is to come is counted anew before.
        """
        look = transact(tick.look)
        if look.now < self._latest:
            changed = transact(tick.count_anew)
            if changed:
                logger.warning(CHANGED, len(changed), ", ".join(changed[:NAMED]) + (", ..." if len(changed) > NAMED else ""))
        self._latest = look.now
        locked: set[int] = set()
        for schedule in look.due:
            if schedule.plan_id in locked:
                continue
            try:
                self._one(transact, schedule)
            except DBAPIError as error:
                if db.is_locked(error):
                    locked.add(schedule.plan_id)  # its turn comes again in a second
                elif db.may_pass(error):
                    raise
                else:
                    self._tell(schedule, str(error.orig))

    def _one(self, transact: Transact, schedule: DueSchedule) -> None:
        try:
            transact(lambda tx: tick.tick(tx, schedule.id))
        except RelevoError as error:
            self._tell(schedule, str(error))
        else:
            self._told.pop(schedule.name, None)

    def _tell(self, schedule: DueSchedule, problem: str) -> None:
        if self._told.get(schedule.name) != problem:
            logger.warning("Schedule %s cannot tick: %s", schedule.name, problem)
        self._told[schedule.name] = problem
