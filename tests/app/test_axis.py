"""The time axis: to scale where somebody worked, cut where nobody did, labels that do not overlap."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.axis import APART, axis, labels

START = datetime(2030, 1, 31, 9, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_what_was_worked_is_to_scale() -> None:
    made = axis([(at(0), at(60)), (at(70), at(100))], at(0), at(100))
    assert made.cuts == []
    assert [made.x(at(each)) for each in (0, 25, 50, 100)] == [0, 25, 50, 100]
    assert (made.x(at(-5)), made.x(at(500))) == (0, 100)


def test_a_long_pause_is_cut_short() -> None:
    made = axis([(at(0), at(60)), (at(86_400), at(86_460))], at(0), at(86_460))
    assert made.cuts == [(at(60), at(86_400))]
    assert made.x(at(60)) == 42
    assert round(made.x(at(86_400)), 6) == 58
    shown = labels(made, None)
    assert [each.words for each in shown if each.x in (0, 100)] == ["09:00:00", "02-01 09:01"]


def test_one_pause_alone_takes_what_there_is() -> None:
    made = axis([(at(0), at(0))], at(0), at(86_400))
    assert made.cuts == [(at(0), at(86_400))]
    assert made.x(at(43_200)) == 50


def test_now_is_labelled_and_short_times_have_milliseconds() -> None:
    made = axis([(at(0), at(0.25))], at(0), at(0.25))
    assert any(each.now for each in labels(made, at(0.2)))
    assert labels(made, None)[0].words == "09:00:00.000"


def test_labels_tell_the_times_apart_that_were_worked_before_a_long_pause() -> None:
    made = axis([(at(0), at(8))], at(0), at(14 * 86_400))
    words = [each.words for each in labels(made, at(8))]
    assert words[0] == "09:00:00"
    assert words[-1] == "02-14 09:00"
    assert len(set(words)) == len(words) > 3
    still = [each.words for each in labels(axis([(at(0), at(1.7))], at(0), at(14 * 86_400)), None)]
    assert len(set(still)) == len(still)


times = st.floats(0, 10**8, allow_nan=False)


@given(st.lists(st.tuples(times, times), max_size=12), times)
def test_it_rises_from_0_to_100_whatever_happened(spans: list[tuple[float, float]], last: float) -> None:
    busy = [(at(min(pair)), at(max(pair))) for pair in spans]
    end = max([at(last), *(b for _, b in busy)])
    made = axis(busy, START, end)
    xs = [made.x(each) for each in sorted({START, end, *(a for a, _ in busy), *(b for _, b in busy)})]
    assert xs == sorted(xs)
    assert all(-1e-6 <= each <= 100 + 1e-6 for each in xs)
    assert made.x(made.end) == 100
    shown = labels(made, end)
    assert len(shown) <= 100 / APART + 1
    assert all(right.x - left.x >= APART - 1e-9 for left, right in pairwise(shown))
