"""K1: the clocks change. Daily work once per local day, hourly work by real time, nine o'clock stays nine; times say their zone."""

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from ordering import cron
from ordering.model import Missed
from tests.cases.kit import Kit

ZONES = {"America/New_York": (date(2026, 3, 8), date(2026, 11, 1)), "Europe/Berlin": (date(2026, 3, 29), date(2026, 10, 25))}
BEGIN, END = datetime(2025, 12, 31, 12, tzinfo=UTC), datetime(2027, 1, 1, 12, tzinfo=UTC)
DAYS = [date(2026, 1, 1) + timedelta(days=number) for number in range(365)]


def a_year(expression: str, zone: str) -> list[datetime]:
    """The ticks that a feeder makes in the local year 2026, looking now and then by a clock of our own, as local times."""
    now, next_at = BEGIN, cron.first(expression, zone, BEGIN)
    made: list[datetime] = []
    while now < END:
        now += timedelta(hours=3, minutes=7)
        if next_at <= now:
            found = cron.due(expression, zone, Missed.ALL, next_at, now)
            assert not found.skipped
            made += found.made
            next_at = found.next
    assert made == sorted(set(made))
    local = [at.astimezone(ZoneInfo(zone)) for at in made]
    return [at for at in local if at.year == 2026]


@pytest.mark.parametrize("zone", ZONES)
def test_daily_work_is_done_once_a_day(zone: str) -> None:
    forward, back = ZONES[zone]
    gap, repeated = (2, 1) if zone == "America/New_York" else (2, 2)  # the hour that is left out, and the one that comes twice
    for expression, hour in (("30 1 * * *", 1), ("30 2 * * *", 2)):
        ticks = a_year(expression, zone)
        assert [at.date() for at in ticks] == DAYS
        odd = {at.date(): (at.hour, at.minute) for at in ticks if (at.hour, at.minute) != (hour, 30)}
        assert odd == ({forward: (3, 0)} if hour == gap else {})
        if hour == repeated:
            (once,) = [at for at in ticks if at.date() == back]
            assert once.fold == 0, "the first of the two"


@pytest.mark.parametrize("zone", ZONES)
def test_hourly_work_goes_by_real_time(zone: str) -> None:
    forward, back = ZONES[zone]
    ticks = a_year("0 * * * *", zone)
    instants = [at.astimezone(UTC) for at in ticks]
    assert {later - at for at, later in pairwise(instants)} == {timedelta(hours=1)}
    assert {day: count for day, count in Counter(at.date() for at in ticks).items() if count != 24} == {forward: 23, back: 25}


@pytest.mark.parametrize("zone", ZONES)
def test_nine_on_weekdays_stays_nine(zone: str) -> None:
    ticks = a_year("0 9 * * 1-5", zone)
    assert [at.date() for at in ticks] == [day for day in DAYS if day.isoweekday() <= 5]
    assert {(at.hour, at.minute) for at in ticks} == {(9, 0)}
    assert len({at.utcoffset() for at in ticks}) == 2


def test_a_time_names_its_zone_or_is_refused(kit: Kit) -> None:
    kit.plan("line", start=False)
    instant = "2030-01-31T09:00:00"
    # Three hosts' clocks show three times; what is written says which instant is meant.
    calls = {
        "Z": ("Asia/Tokyo", f"{instant}Z"),
        "+02:00": ("America/New_York", "2030-01-31T11:00:00+02:00"),
        "naive": ("Asia/Tokyo", instant),
    }
    services = {
        name: kit.command("add", "line", "shell", "--not-before", written, "--title", name, TZ=zone)
        for name, (zone, written) in calls.items()
    }
    codes = {name: service.process.wait(60) for name, service in services.items()}
    assert codes == {"Z": 0, "+02:00": 0, "naive": 2}
    assert "'2030-01-31T09:00:00' has no time zone; write for example" in services["naive"].text()
    assert {row.title: row.not_before for row in kit.sql("select title, not_before from relevo.item")} == {
        "Z": datetime.fromisoformat(f"{instant}+00:00"),
        "+02:00": datetime.fromisoformat(f"{instant}+00:00"),
    }
    made = kit.command("schedule", "create", "nine", "line", "0 9 * * *", "shell", "--timezone", "Europe/Berlin", "--json", TZ="Asia/Tokyo")
    assert made.process.wait(60) == 0
    for tick in json.loads(made.text().splitlines()[-1])["ticks"]:
        assert datetime.fromisoformat(tick).astimezone(ZoneInfo("Europe/Berlin")).hour == 9
