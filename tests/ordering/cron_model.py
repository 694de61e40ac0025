"""What a cron expression means, said a second way: every minute of a span looked at, one after the other."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def values(term: str, low: int, high: int) -> set[int]:
    """The numbers that a field of stars, numbers, ranges, steps and lists of them names."""
    found: set[int] = set()
    for part in term.split(","):
        span, _, step = part.partition("/")
        begin, _, end = span.partition("-")
        first, last = (low, high) if span == "*" else (int(begin), int(end or (high if step else begin)))
        found |= set(range(first, last + 1, int(step or 1)))
    return found


def ticks(cron: str, timezone: str, begin: datetime, end: datetime) -> list[datetime]:
    """The ticks from `begin` to `end`, both included, in UTC."""
    zone = ZoneInfo(timezone)
    terms = cron.split()
    minutes, hours, days, months, weekdays = (values(term, *bounds) for term, bounds in zip(terms, BOUNDS, strict=True))
    both = terms[2].startswith("*") or terms[4].startswith("*")

    def on(day: date) -> bool:
        either = (day.day in days, day.isoweekday() % 7 in weekdays)
        return day.month in months and (all(either) if both else any(either))

    def named(local: datetime) -> bool:
        return local.minute in minutes and local.hour in hours and on(local.date())

    if terms[0].startswith("*") or terms[1].startswith("*"):
        found = {at for at in each_minute(begin, end) if named(at.astimezone(zone))}
    else:
        # Fixed times: each one of each local day once, at its first coming, or at the first moment that exists.
        found = set()
        for number in range((end - begin).days + 3):
            day = begin.astimezone(zone).date() + timedelta(days=number - 1)
            if on(day):
                found |= {existing(day, hour, minute, zone) for hour in hours for minute in minutes}
    return sorted(at for at in found if begin <= at <= end)


def existing(day: date, hour: int, minute: int, zone: ZoneInfo) -> datetime:
    """The instant of a local time: the first of two, or where it is left out the first one after the gap."""
    local = datetime(day.year, day.month, day.day, hour, minute)
    while local.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local:
        local += MINUTE
    return local.replace(tzinfo=zone).astimezone(UTC)


def each_minute(begin: datetime, end: datetime) -> Sequence[datetime]:
    first = begin.replace(second=0, microsecond=0)
    first += MINUTE if first < begin else timedelta(0)
    return [first + MINUTE * number for number in range(int((end - first) / MINUTE) + 1)]
