"""Positions: what every pair of neighbours, and every line that people shuffle, may count on."""

from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ordering.position import LIMIT, SCALE, between, between_many, spread, too_fine


@pytest.fixture(scope="module", autouse=True)
def careless_context() -> Iterator[None]:
    """Everything here runs where a careless caller left two digits of precision."""
    with localcontext(Context(prec=2)):
        yield


def decimals(scale: int = SCALE, size: int = 10**15) -> st.SearchStrategy[Decimal]:
    wide = st.integers(1 - size, size - 1).map(Decimal)
    fine = st.builds(
        lambda number, digits: Decimal(f"{number}E-{digits}"),
        st.integers(-(10**6), 10**6),
        st.integers(0, scale),
    )
    return st.one_of(wide, fine, st.integers(-20, 20).map(Decimal))


def ordered_pair() -> st.SearchStrategy[tuple[Decimal, Decimal]]:
    pairs = st.tuples(decimals(), decimals())
    close = st.builds(
        lambda base, step: (base, Decimal(text_of_sum(base, step))),
        decimals(),
        st.integers(1, 10**4),
    )
    return st.one_of(pairs, close).filter(lambda p: p[0] != p[1]).map(lambda p: (min(p), max(p)))


def text_of_sum(base: Decimal, units: int) -> str:
    """base plus that many of the smallest units, as text."""
    return f"{int(base.scaleb(SCALE, Context(prec=99))) + units}E-{SCALE}"


def digits(position: Decimal) -> int:
    text = format(position, "f")
    return len(text.partition(".")[2])


def assert_short(position: Decimal) -> None:
    text = format(position, "f")
    assert "." not in text or text[-1] not in "0."
    assert position.as_tuple().exponent == -digits(position)
    assert text != "-0"


def whole_inside(low: Decimal, high: Decimal, scale: int) -> bool:
    exact = Context(prec=120)
    first = exact.scaleb(low, scale).to_integral_value("ROUND_FLOOR", exact)
    return exact.add(first, Decimal(1)) < exact.scaleb(high, scale)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (None, None, "1"),
        (None, "3", "2"),
        (None, "3.5", "3"),
        (None, "-2.5", "-3"),
        ("3", None, "4"),
        ("3.5", None, "4"),
        ("-2.5", None, "-2"),
        ("3", "4", "3.5"),
        ("3", "5", "4"),
        ("3.9", "4.05", "4"),
        ("1", "1.1", "1.05"),
        ("1.09", "1.2", "1.1"),
        ("1", "1000", "500"),
        ("-1", "1000000", "500000"),
        ("-1", "0", "-0.5"),
        ("-0.5", "0.5", "0"),
    ],
)
def test_between_by_example(low: str | None, high: str | None, expected: str) -> None:
    found = between(Decimal(low) if low else None, Decimal(high) if high else None)
    assert format(found, "f") == expected
    assert_short(found)


@settings(deadline=None)
@given(ordered_pair())
def test_between_is_inside_with_the_fewest_digits_near_the_middle(
    pair: tuple[Decimal, Decimal],
) -> None:
    low, high = pair
    found = between(low, high)
    assert low < found < high
    assert_short(found)
    scale = digits(found)
    assert scale == 0 or not whole_inside(low, high, scale - 1)
    exact = Context(prec=120)
    width = exact.subtract(high, low)
    from_middle = exact.subtract(exact.add(low, high), exact.multiply(found, Decimal(2))).copy_abs()
    if width >= 4:
        assert exact.multiply(from_middle, Decimal(2)) <= width
    else:
        assert from_middle <= Decimal(f"1E-{scale}")


@settings(deadline=None)
@given(decimals())
def test_between_at_an_open_end_is_the_next_whole_number(position: Decimal) -> None:
    assume(-LIMIT < position.to_integral_value("ROUND_FLOOR") < LIMIT)
    above, below = between(position, None), between(None, position)
    exact = Context(prec=120)
    assert digits(above) == digits(below) == 0
    assert position < above <= exact.add(position, Decimal(1))
    assert exact.subtract(position, Decimal(1)) <= below < position


@pytest.mark.parametrize(("low", "high"), [("2", "1"), ("1", "1.0"), ("NaN", "1"), ("1", "Infinity")])
def test_a_gap_that_is_none_is_refused(low: str, high: str) -> None:
    with pytest.raises(ValueError, match="position"):
        between(Decimal(low), Decimal(high))
    with pytest.raises(ValueError, match="position"):
        spread(Decimal(low), Decimal(high), 3)


def test_too_fine_is_what_the_column_refuses() -> None:
    assert not too_fine(Decimal(f"1E-{SCALE}"))
    assert too_fine(Decimal(f"1E-{SCALE + 1}"))
    assert not too_fine(Decimal("1.5" + "0" * SCALE))
    largest = Decimal("-" + "9" * 15 + "." + "9" * SCALE)
    assert not too_fine(largest)
    assert len(format(largest, "f")) <= 64
    assert too_fine(LIMIT)
    assert too_fine(Decimal("-1E15"))


def end() -> st.SearchStrategy[tuple[Decimal | None, Decimal | None]]:
    below = decimals().map(lambda high: (None, high))
    above = decimals().map(lambda low: (low, None))
    return st.one_of(ordered_pair(), below, above, st.just((None, None)))


@settings(deadline=None)
@given(end(), st.integers(0, 40))
def test_many_are_increasing_inside_and_short(gap: tuple[Decimal | None, Decimal | None], n: int) -> None:
    low, high = gap
    for places in (between_many(low, high, n), spread(low, high, n)):
        assert len(places) == n
        line = [p for p in (low, *places, high) if p is not None]
        assert all(a < b for a, b in pairwise(line))
        for position in places:
            assert_short(position)
            assert digits(position) == 0 or None not in gap


@settings(deadline=None)
@given(ordered_pair(), st.integers(1, 40))
def test_between_many_uses_as_few_digits_as_possible(pair: tuple[Decimal, Decimal], n: int) -> None:
    low, high = pair
    scale = max(map(digits, between_many(low, high, n)))
    if scale:
        exact = Context(prec=120)
        coarser = exact.scaleb(exact.subtract(high, low), scale - 1)
        assert coarser <= n + 1
    assert max(map(digits, spread(low, high, n))) <= scale + 1


@settings(deadline=None)
@given(ordered_pair(), st.integers(1, 40))
def test_spread_is_even(pair: tuple[Decimal, Decimal], n: int) -> None:
    exact = Context(prec=120)
    places = spread(*pair, n)
    gaps = [exact.subtract(b, a) for a, b in pairwise(places)]
    if gaps:
        assert exact.multiply(max(gaps), Decimal(4)) <= exact.multiply(min(gaps), Decimal(5))


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="n "):
        between_many(None, None, -1)
