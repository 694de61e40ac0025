"""Times, durations and texts as people write and read them."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given as every
from hypothesis import strategies

from app import given, item_lines, show
from app.fields import BadInput
from app.terminal_text import many_lines, one_line
from ordering.errors import Invalid


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("0", 0), ("90", 90), ("1.5", 1.5), ("90s", 90), ("15m", 900), ("1h30m", 5400), ("2d", 172_800), ("1w", 604_800), (" 1H 30M ", 5400)],
)
def test_durations(written: str, seconds: float) -> None:
    assert given.duration("--for", written) == timedelta(seconds=seconds)


@pytest.mark.parametrize("written", ["", "h", "1x", "-1h", "1h-", "1e3", "½h", "1h 30", "nan", "inf", "99999999999s"])
def test_what_is_no_duration_is_refused(written: str) -> None:
    with pytest.raises(Invalid, match=r"^--for: .* is not a duration"):
        given.duration("--for", written)


def test_a_duration_beyond_ten_years_is_refused() -> None:
    with pytest.raises(Invalid, match=r"^--for: is more than ten years"):
        given.duration("--for", "9999999h")


@pytest.mark.parametrize("written", ["2030-01-31T09:00:00Z", "2030-01-31T10:00+01:00", " 20300131T090000Z "])
def test_times(written: str) -> None:
    assert given.moment("--until", written) == datetime(2030, 1, 31, 9, tzinfo=UTC)


@pytest.mark.parametrize("written", ["", "now", "2030-13-01T00:00Z", "0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00"])
def test_what_is_no_time_is_refused(written: str) -> None:
    with pytest.raises(Invalid, match=r"^--until: .* is not a time"):
        given.moment("--until", written)


@every(strategies.text())
def test_a_line_is_one_line_and_shows_what_would_steer_a_terminal(text: str) -> None:
    shown = one_line(text, 50)
    assert len(shown) <= 50
    assert all(char.isprintable() or char in "\u200c\u200d" for char in shown)
    assert all(char.isprintable() or char in "\n\t\u200c\u200d" for char in many_lines(text))


def test_a_cut_is_seen() -> None:
    assert one_line("x" * 10, 10) == "x" * 10
    assert one_line("x" * 11, 10) == "x" * 9 + "…"
    assert one_line("\x00" * 5, 10) == "\\x00\\x00\\…"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0s"), (9.94, "9.9s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (-90, "in 90s"), (1e6, "11d")],
)
def test_how_long_ago(seconds: float, shown: str) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    assert show.ago(now - timedelta(seconds=seconds), now) == shown


@pytest.mark.parametrize("written", ['{"a": 1, "a": 2}', '[{"b": {"a": 1, "c": 2, "a": 1}}]'])
def test_json_that_names_a_field_twice_is_refused(written: str) -> None:
    for read in (given.arguments, given.json_value):
        with pytest.raises(Invalid, match=r"^args: names 'a' twice in one object; give it once"):
            read("args", written)


def test_a_line_of_json_names_each_field_once_and_may_begin_with_a_byte_order_mark() -> None:
    with pytest.raises(BadInput, match=r"^f: line 2: names 'args' twice in one object; give it once\.$"):
        item_lines.item("f: line 2", b'{"task": "t", "args": [1], "args": [2]}')
    assert item_lines.item("f: line 1", b'\xef\xbb\xbf{"task": "t", "args": [1]}').args == [1]
