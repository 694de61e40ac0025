"""Follow a run to its end: what started and ended since the last look, and how it all came out.

A stream's run has no end: it is followed until nothing is left of it, and what was in it before is nobody's concern.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from app.cli_errors import Gone
from ordering import clock, db, lines, views
from ordering.lines import ItemLine
from ordering.model import State
from ordering.views import PlanView

LOOK = 0.5  # seconds between two looks
OUTAGE = 30.0  # seconds that Postgres may be away (a restart takes a few)
STUCK = 30.0  # seconds in which nothing takes up what is due
UNRESOLVED_FOR = 15.0  # seconds after which an interruption that may still end by itself is reported
PAGE = 1000
# `settled_at` is when the transaction began, and it may have waited for the plan's lock behind one that began later.
OVERLAP = timedelta(seconds=20)


@dataclass(frozen=True)
class Look:
    """A run as it is now. `changed` are items that started or ended since the look before; `ended` says how the run ended.

    `ended` is drained, paused or halted, or None while the run goes on. `unresolved` are the failed and interrupted items.
    """

    plan: PlanView
    done: int
    total: int
    changed: Sequence[ItemLine]
    unresolved: Sequence[ItemLine]
    ended: str | None


RUN = text("select ended_as from relevo.run where id = :id")
SETTLED = text(f"""
    select {lines.LINE} where i.plan_id = :plan_id and i.settled_at >= :since
    order by i.settled_at, i.id limit {PAGE}
""")
DUE = text("""
    select exists (select from relevo.item i where i.plan_id = :plan_id and i.state = 'dispatched') or coalesce((
        select not_before is null or not_before <= now() from relevo.item
        where plan_id = :plan_id and state = 'waiting' order by position, id limit 1), false)
""")


class Follower:
    """Looks at one run of one plan again and again and tells what is new since `since`."""

    def __init__(self, plan: str, run_id: int, since: datetime) -> None:
        self._plan, self._run_id = plan, run_id
        self._begin = self._since = since
        self._shown: dict[int, tuple[State, int]] = {}
        self._ended: set[int] = set()

    def look(self, tx: Connection) -> Look:
        """The run as it is now."""
        run = tx.execute(RUN, {"id": self._run_id}).one()
        plan = views.plan(tx, self._plan)
        out = lines.out(tx, plan.id, limit=PAGE)
        unresolved = lines.unresolved(tx, plan.id, limit=PAGE)
        if plan.concurrency > 1:
            unresolved = [item for item in unresolved if item.since >= self._begin]
        settled = self._settled(tx, plan.id)
        changed = [item for item in [*settled, *unresolved, *out] if self._is_new(item)]
        done = sum(plan.counts[state] for state in (State.SUCCEEDED, State.SKIPPED, State.RESOLVED, State.CANCELLED))
        left = sum(plan.counts[state] for state in (State.WAITING, State.POSTPONED, State.DISPATCHED, State.RUNNING))
        ended = run.ended_as or self._halted(tx, plan)
        if plan.concurrency > 1:
            self._ended |= {item.id for item in settled}
            done = len(self._ended)
            ended = ended or (None if left else "drained")
        return Look(plan, done + len(unresolved), done + len(unresolved) + left, changed, unresolved, ended)

    def _settled(self, tx: Connection, plan_id: int) -> list[ItemLine]:
        found: list[ItemLine] = []
        since = max(self._begin, self._since - OVERLAP)
        while True:
            page = [lines.line(row) for row in tx.execute(SETTLED, {"plan_id": plan_id, "since": since})]
            found += page
            if page:
                since = page[-1].since
                self._since = max(self._since, since)
            if len(page) < PAGE or page[0].since == since:
                return found

    def _is_new(self, item: ItemLine) -> bool:
        """Whether the item has not been told in this state and attempt; what is dispatched only is not told."""
        told = (item.state, item.attempts)
        if item.state is State.DISPATCHED or self._shown.get(item.id) == told:
            return False
        self._shown[item.id] = told
        return True

    def _halted(self, tx: Connection, plan: PlanView) -> str | None:
        head = plan.head
        if head is None or head.state not in (State.FAILED, State.INTERRUPTED):
            return None
        age = (clock.now(tx) - head.since).total_seconds()
        return None if head.pending and age < UNRESOLVED_FOR else "halted"


def follow(engine: Engine, follower: Follower, on_look: Callable[[Look], None]) -> Look:
    """Look until the run has ended; the last look. Raises Gone when Postgres, the feeder or the workers are away for long."""
    # One snapshot a look: a head that is decided meanwhile must not be missing from the list of what is unresolved.
    snapshots = engine.execution_options(isolation_level="REPEATABLE READ")
    away_since: float | None = None
    stuck_since: float | None = None
    while True:
        began = time.monotonic()
        try:
            with snapshots.begin() as tx:
                look = follower.look(tx)
                stuck = _stuck(tx, look)
        except DBAPIError as error:
            if not db.is_disconnect(error):
                raise
            away_since = away_since or began
            if time.monotonic() - away_since > OUTAGE:
                raise Gone(f"Postgres has not answered for {OUTAGE:.0f} s; `relevo status` tells what is up.") from None
            time.sleep(LOOK)
            continue
        away_since = None
        on_look(look)
        if look.ended is not None:
            return look
        stuck_since = (stuck_since or began) if stuck and not look.changed else None
        if stuck_since is not None and time.monotonic() - stuck_since > STUCK:
            raise Gone(f"Plan {look.plan.name!r}: {stuck} for {STUCK:.0f} s; `relevo status` tells what is up. The plan is untouched.")
        # Counting a long line takes its time; looking takes a tenth of the database's at the most.
        time.sleep(max(LOOK, 10 * (time.monotonic() - began)))


def _stuck(tx: Connection, look: Look) -> str | None:
    """Why what is due is not taken up, or None if somebody is at work or nothing is due."""
    if look.plan.counts[State.RUNNING] or not tx.execute(DUE, {"plan_id": look.plan.id}).scalar_one():
        return None
    if not views.live_sessions(tx):
        return "no worker has been there"
    return None if look.plan.counts[State.DISPATCHED] or look.plan.head else "no feeder has handed out what is due"


def verdict(look: Look) -> str | None:
    """Why the run that ended so is not a success, naming what failed; None if it is one."""
    named = ", ".join(f"{item.id} {(item.title or item.task)[:80]!r} ({item.state})" for item in look.unresolved[:20])
    more = f" and {len(look.unresolved) - 20} more" if len(look.unresolved) > 20 else ""
    name = look.plan.name
    match look.ended:
        case "paused":
            waiting = look.plan.counts[State.WAITING] + look.plan.counts[State.POSTPONED]
            return f"Plan {name!r} was paused; {waiting} items wait, `relevo start {name}` lets it go on."
        case "halted":
            return f"Plan {name!r} halted at {named}{more}; see `relevo show ITEM`; retry, skip or resolve it, or `relevo repair-all`."
        case _ if look.unresolved:
            return f"Plan {name!r} drained with unresolved items: {named}{more}; retry, skip or resolve each, or use `relevo repair-all`."
        case _:
            return None
