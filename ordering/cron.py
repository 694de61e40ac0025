"""Cron expressions with time zones: the instants they name, and which of them are made up for. Pure; `cronsim` reads them."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice, takewhile
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from ordering.errors import Invalid
from ordering.model import Missed
from ordering.text import checked

CRON_LIMIT = 200  # characters
ZONE_LIMIT = 100
LATE = timedelta(seconds=60)  # a tick that is seen later than this was missed: the finest schedule ticks each minute
SECOND = timedelta(seconds=1)
MOST = 100  # ticks that `all` makes up for at a time, the latest ones
EXAMPLE = 'write minute, hour, day, month and day of the week, for example "30 2 * * *"'


def zone(timezone: str) -> tzinfo:
    """The time zone of this name. Raises Invalid."""
    checked("timezone", timezone, ZONE_LIMIT)
    if timezone == "UTC":
        return UTC  # also where no time zone data is installed
    try:
        if timezone != "localtime":  # each machine's own, so no two feeders need agree on it
            return ZoneInfo(timezone)
        raise ZoneInfoNotFoundError
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid("timezone", f"{timezone!r} is not a known time zone; write for example Europe/Berlin or UTC.") from None


# A step through a range of one is that one. `cronsim` takes such a range for a bare number, whose steps go on to the end of the field.
ONE = re.compile(r"(?<![\w-])(\w+)-\1/0*[1-9]\d*(?!\w)", re.IGNORECASE)


#: What cron calls some expressions.
NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


def written_out(cron: str) -> str:
    """The five fields that a nickname such as `@daily` stands for; another expression as it is."""
    return NICKNAMES.get(cron.strip().lower(), cron)


def ticks(cron: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """The instants after `after` that `cron` names in that time zone, rising, in UTC. Raises Invalid naming cron or timezone.

    Where the clocks go forward, a fixed time that does not exist comes at the first moment that does; where they go back, one
    that exists twice comes once, the first time. With `*` (or `*/2`) for the minute or the hour it goes by real time instead.
    """
    where = zone(timezone)
    fields = written_out(checked("cron", cron, CRON_LIMIT)).split()
    if len(fields) != 5:
        raise Invalid("cron", f"{cron[:80]!r} does not have five fields; {EXAMPLE}.")
    read = ONE.sub(r"\1", " ".join(fields))
    try:
        walk = CronSim(read, after.astimezone(where))
    except CronSimError as error:
        raise Invalid("cron", f"{cron[:80]!r} has a {str(error).lower()}; {EXAMPLE}.") from None
    by_real_time = "*" in (fields[0][0], fields[1][0]) and where is not UTC
    return _by_real_time(read, where, after.astimezone(UTC)) if by_real_time else _rising(walk, after)


def _rising(walk: CronSim, last: datetime) -> Iterator[datetime]:
    for local in walk:
        at = local.astimezone(UTC)
        # Begun within a repeated hour, the walk names times of its first round, which is over.
        if at > last:
            last = at
            yield at


def _by_real_time(cron: str, where: tzinfo, after: datetime) -> Iterator[datetime]:
    # `cronsim` goes through local time in whole hours and days, and loses its way where half an hour or midnight is left out. Between two
    # changes of the clocks local time runs as real time does, so each span between them is walked by itself.
    offset = _offset(where, after)
    while True:
        for local in CronSim(cron, (after + offset).replace(tzinfo=None)):
            at = local.replace(tzinfo=UTC) - offset
            change = _change(where, offset, after, at)
            if change is not None:
                after, offset = change - SECOND, _offset(where, change)  # the moment of the change belongs to the span behind it
                break
            yield at
            after = at
        else:
            return


def _offset(where: tzinfo, at: datetime) -> timedelta:
    return at.astimezone(where).utcoffset() or timedelta(0)


def _change(where: tzinfo, offset: timedelta, after: datetime, until: datetime) -> datetime | None:
    """The first second behind `after`, and not behind `until`, in which local time has another offset."""
    low = after.replace(microsecond=0)
    while low < until:
        high = min(low + timedelta(days=1), until)  # no zone changes its clocks twice a day
        if _offset(where, high) != offset:
            while high - low > SECOND:
                middle = low + timedelta(seconds=(high - low) // SECOND // 2)
                low, high = (low, middle) if _offset(where, middle) != offset else (middle, high)
            return high
        low = high
    return None


def first(cron: str, timezone: str, after: datetime) -> datetime:
    """The first tick after `after`. Raises Invalid, also where the expression names no date that ever comes."""
    for at in ticks(cron, timezone, after):
        return at
    raise Invalid("cron", f"{cron[:80]!r} names no time within fifty years; {EXAMPLE}.")


def checked_cron(cron: str) -> str:
    """`cron` itself. Raises Invalid if it cannot be read or never comes."""
    first(cron, "UTC", datetime(2000, 1, 1, tzinfo=UTC))
    return cron


@dataclass(frozen=True)
class Due:
    """Which of the ticks that have come are `made`, oldest first, and when the `next` one comes. `skipped`: some were not made."""

    made: Sequence[datetime]
    next: datetime
    skipped: bool


def due(cron: str, timezone: str, missed: Missed, since: datetime, now: datetime) -> Due:
    """What to do at `now` about the ticks from `since`, the one that is due, on. Raises Invalid as `first`."""
    come = _latest(cron, timezone, since, now)
    made = {
        Missed.ONE: come[-1:],
        Missed.SKIP: [at for at in come if now - at < LATE],
        Missed.ALL: come,
    }[missed]
    return Due(made, first(cron, timezone, now), skipped=made[:1] != [since])


def _latest(cron: str, timezone: str, since: datetime, now: datetime) -> list[datetime]:
    """The last MOST ticks from `since` to `now`, found from the end: years of minutes need not be walked through."""
    reach = timedelta(hours=1)
    while True:
        begin = max(since, now - reach)
        come = takewhile(lambda at: at <= now, ticks(cron, timezone, begin - timedelta(seconds=1)))
        found = deque(come, maxlen=MOST)
        if begin == since or len(found) == MOST:
            return list(found)
        reach *= 2


def coming(cron: str, timezone: str, after: datetime, count: int) -> list[datetime]:
    """The first `count` ticks after `after`. Raises Invalid."""
    return list(islice(ticks(cron, timezone, after), count))
