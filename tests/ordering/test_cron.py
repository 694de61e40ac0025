"""Which instants an expression names, and which of the missed ones are made up for, against a model that looks at every minute."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering import cron
from ordering.errors import Invalid
from ordering.model import Missed
from tests.ordering import cron_model

ZONES = st.sampled_from(
    [
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "America/Havana",
        "America/Santiago",
        "Australia/Lord_Howe",
        "Asia/Kolkata",
        "Pacific/Chatham",
    ]
)


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    span = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.integers(1, 20)
    part = st.one_of(number.map(str), span, st.tuples(span, step).map("{0[0]}/{0[1]}".format))
    listed = st.lists(part, min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), step.map("*/{}".format), listed)


EXPRESSIONS = st.one_of(
    st.tuples(field(0, 59), field(0, 23), st.just("*"), st.just("*"), st.just("*")),
    st.tuples(*(field(low, high) for low, high in cron_model.BOUNDS)),
).map(" ".join)
# Around the changes of 2026, in either direction, in the zones above.
SPRING = ("2026-03-07T20:00", "2026-03-28T20:00", "2026-04-04T08:00")
AUTUMN = ("2026-09-05T20:00", "2026-09-26T10:00", "2026-10-03T10:00", "2026-10-24T20:00", "2026-10-31T20:00")
BEGINS = st.one_of(
    st.sampled_from(SPRING + AUTUMN),
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 1)).map(datetime.isoformat),
).map(lambda written: datetime.fromisoformat(written).replace(tzinfo=UTC))
OUTAGES = st.lists(
    st.one_of(st.floats(0.5, 3), st.floats(50, 70), st.floats(300, 8 * 3600)).map(lambda each: timedelta(seconds=each)),
    min_size=1,
    max_size=12,
)


@given(EXPRESSIONS, ZONES, BEGINS)
def test_the_ticks_are_those_of_the_model(expression: str, zone: str, begin: datetime) -> None:
    end = begin + timedelta(days=2)
    wanted = cron_model.ticks(expression, zone, begin + timedelta(microseconds=1), end)
    found: list[datetime] = []
    for at in cron.ticks(expression, zone, begin):
        if at > end or len(found) > len(wanted):
            break
        found.append(at)
    assert found == wanted


@pytest.mark.parametrize(
    ("expression", "zone", "begin", "ticks"),
    [
        # Half an hour comes twice, or is left out: 03:00 and what follows come on the hour, that day and the days after.
        ("*/30 3 * * *", "Australia/Lord_Howe", "2026-04-04T13:00Z", "04T16:30 04T17:00 05T16:30"),
        ("*/30 3 * * *", "Australia/Lord_Howe", "2026-10-03T13:00Z", "03T16:00 03T16:30 04T16:00"),
        ("*/30 0 * * *", "Australia/Lord_Howe", "2026-10-03T14:30Z", "04T13:00 04T13:30 05T13:00"),
        # Midnight is left out: the day begins at 01:00.
        ("*/30 1 * * 0", "America/Santiago", "2026-09-05T20:00Z", "06T04:00 06T04:30 13T04:00"),
        ("0 * * * 0", "America/Santiago", "2026-09-05T20:00Z", "06T04:00 06T05:00 06T06:00"),
    ],
)
def test_by_real_time_where_the_clocks_change_oddly(expression: str, zone: str, begin: str, ticks: str) -> None:
    found = islice(cron.ticks(expression, zone, datetime.fromisoformat(begin)), 3)
    assert " ".join(f"{at:%dT%H:%M}" for at in found) == ticks


@pytest.mark.parametrize(
    ("nickname", "tick"), [("@hourly", "05-01T13"), (" @Daily ", "05-02T00"), ("@weekly", "05-03T00"), ("@yearly", "01-01T00")]
)
def test_crons_nicknames_are_read(nickname: str, tick: str) -> None:
    assert f"{cron.first(nickname, 'UTC', datetime(2026, 5, 1, 12, 30, tzinfo=UTC)):%m-%dT%H}" == tick


@given(EXPRESSIONS, ZONES, BEGINS, st.floats(0, 1))
def test_the_first_tick_stays_the_first_until_it_comes(expression: str, zone: str, begin: datetime, part: float) -> None:
    try:
        first = cron.first(expression, zone, begin)
    except Invalid:
        return
    later = begin + (first - begin) * part
    assert later == first or cron.first(expression, zone, later) == first


@given(EXPRESSIONS, ZONES, BEGINS, OUTAGES, st.sampled_from(Missed))
def test_what_is_made_after_outages_is_what_the_model_makes(
    expression: str, zone: str, begin: datetime, outages: list[timedelta], missed: Missed
) -> None:
    try:
        next_at = cron.first(expression, zone, begin)
    except Invalid:
        return  # names no date that comes
    now, seen_until, made, wanted = begin, begin, list[datetime](), list[datetime]()
    for outage in outages:
        now += outage
        come = cron_model.ticks(expression, zone, seen_until + timedelta(microseconds=1), now)
        if not come:
            assert next_at > now
            continue
        assert next_at == come[0]
        found = cron.due(expression, zone, missed, next_at, now)
        match missed:
            case Missed.ONE:
                chosen = come[-1:]
            case Missed.SKIP:
                chosen = [at for at in come if at > now - timedelta(seconds=60)]
            case Missed.ALL:
                chosen = come[-100:]
        assert found.skipped is (chosen != come)
        made += found.made
        wanted += chosen
        next_at, seen_until = found.next, now
    assert made == wanted
    assert made == sorted(set(made))


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_text_is_an_expression_or_refused(expression: str, zone: str) -> None:
    for written, timezone in ((expression, "UTC"), ("0 0 * * *", zone), (" ".join(expression[:5]), "UTC")):
        try:
            cron.first(written, timezone, datetime(2026, 1, 1, tzinfo=UTC))
        except Invalid as refusal:
            told = str(refusal)
        else:
            continue
        assert told.startswith(("cron: ", "timezone: "))
        assert "\n" not in told


@pytest.mark.parametrize(
    ("expression", "zone", "said"),
    [
        ("61 * * * *", "UTC", "cron: '61 * * * *' has a bad minute; write minute, hour,"),
        ("* * * *", "UTC", "cron: '* * * *' does not have five fields;"),
        ("@reboot", "UTC", "cron: '@reboot' does not have five fields;"),
        ("@daily 1", "UTC", "cron: '@daily 1' does not have five fields;"),
        ("* * * * * *", "UTC", "cron: '* * * * * *' does not have five fields;"),
        ("0 0 30 2 *", "UTC", "cron: '0 0 30 2 *' has a bad day-of-month;"),
        ("0 0 */31 * MON#5", "UTC", "cron: '0 0 */31 * MON#5' names no time within fifty years;"),
        ("0 " * 200, "UTC", "cron: has 400 characters; at most 200 are allowed."),
        ("\0 0 * * *", "UTC", "cron: holds a NUL character"),
        ("0 0 * * *", "Mars/Olympus", "timezone: 'Mars/Olympus' is not a known time zone; write for example Europe/Berlin or UTC."),
        ("0 0 * * *", "localtime", "timezone: 'localtime' is not a known time zone;"),
        ("0 0 * * *", "America", "timezone: 'America' is not a known time zone;"),
        ("0 0 * * *", "../../etc/passwd", "timezone: '../../etc/passwd' is not a known time zone;"),
        ("0 0 * * *", "", "timezone: '' is not a known time zone;"),
        ("0 0 * * *", "\ud800", "timezone: holds a NUL character or half a surrogate pair"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_sentence(expression: str, zone: str, said: str) -> None:
    with pytest.raises(Invalid) as refusal:
        cron.first(expression, zone, datetime(2026, 1, 1, tzinfo=UTC))
    assert str(refusal.value).startswith(said)


def test_years_of_minutes_are_not_walked_through() -> None:
    now = datetime(2026, 6, 1, 12, 0, 30, tzinfo=UTC)
    found = cron.due("* * * * *", "UTC", Missed.ALL, datetime(1990, 1, 1, tzinfo=UTC), now)
    assert len(found.made) == cron.MOST
    assert (found.made[0], found.made[-1]) == (now.replace(second=0) - timedelta(minutes=99), now.replace(second=0))
    assert found.next == datetime(2026, 6, 1, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize(("expression", "as_well"), [("* 0-0/1 * * *", "* 0 * * *"), ("5-5/2,30 9 * * MON-MON/3", "5,30 9 * * MON")])
def test_steps_through_a_range_of_one_are_that_one(expression: str, as_well: str) -> None:
    begin = datetime(2026, 3, 7, 20, tzinfo=UTC)
    assert list(islice(cron.ticks(expression, "UTC", begin), 80)) == list(islice(cron.ticks(as_well, "UTC", begin), 80))
