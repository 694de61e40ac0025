"""Rates in Celery's words."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ordering import rate
from ordering.errors import Invalid


@pytest.mark.parametrize(
    ("written", "per_second", "shown"),
    [
        ("10/s", 10, "10/s"),
        ("10", 10, "10/s"),
        ("100/m", Decimal(100) / 60, "100/m"),
        ("5/h", Decimal(5) / 3600, "5/h"),
        (" 120/M ", 2, "2/s"),
        ("0.5/s", Decimal("0.5"), "30/m"),
        ("0.042/h", Decimal("0.042") / 3600, "0.042/h"),
        ("100000/s", 100_000, "100000/s"),
    ],
)
def test_a_rate_is_items_per_second(written: str, per_second: Decimal, shown: str) -> None:
    found = rate.parse(written)
    assert found == per_second
    assert rate.shown(found) == shown


def test_none_is_no_limit() -> None:
    assert rate.parse("none") is None


@pytest.mark.parametrize("written", ["", "fast", "-1/s", "1/d", "10/s/s", "1e3/s", "nan", "inf/s", "9999999/s", "\u0661/s"])
def test_what_is_no_rate_is_refused(written: str) -> None:
    with pytest.raises(Invalid, match=r"^rate: .* is not a rate; write for example 10/s"):
        rate.parse(written)


@pytest.mark.parametrize("written", ["0", "0/h", "0.001/h", "100001/s"])
def test_what_is_out_of_range_is_refused(written: str) -> None:
    with pytest.raises(Invalid, match=r"^rate: is out of range"):
        rate.parse(written)


@given(st.integers(1, 100_000), st.sampled_from("smh"))
def test_what_is_shown_says_the_same(number: int, unit: str) -> None:
    once = rate.parse(f"{number}/{unit}")
    assert once is not None
    again = rate.parse(rate.shown(once))
    assert again is not None
    assert abs(again - once) < Decimal("1e-9")
