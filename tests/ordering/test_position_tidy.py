"""Tidying makes room around a gap, keeps the order, and leaves alone what is out."""

import random
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ordering.position import SCALE, NoRoom, between, between_many, tidy, too_fine

Peg = tuple[int, Decimal, bool]


def digits(position: Decimal) -> int:
    return len(format(position, "f").partition(".")[2])


@st.composite
def crowded(draw: st.DrawFn) -> tuple[list[Peg], int]:
    """A line grown by drops into few gaps, some items of it out, and a gap in it."""
    line: list[Decimal] = []
    at = 0
    for jump in draw(st.lists(st.one_of(st.just(0), st.just(1), st.integers(0, 60)), max_size=60)):
        at = (at + jump) % (len(line) + 1)
        position = between(line[at - 1] if at else None, line[at] if at < len(line) else None)
        if not too_fine(position):
            line.insert(at, position)
    rare = st.sampled_from([False, False, False, True])
    fixed = draw(st.lists(rare, min_size=len(line), max_size=len(line)))
    pegs = [(key, position, out) for key, (position, out) in enumerate(zip(line, fixed, strict=True))]
    return pegs, draw(st.integers(0, len(line)))


@settings(deadline=None, max_examples=300)
@given(crowded())
def test_tidy_keeps_the_order_and_makes_room(case: tuple[list[Peg], int]) -> None:
    pegs, gap = case
    try:
        moved = tidy(pegs, gap)
    except NoRoom:
        assert 0 < gap < len(pegs)
        run = pegs_around(pegs, gap)
        assert any(map(too_fine, between_many(run[0][1], run[-1][1], len(run) - 1)))
        return
    assert moved is not None
    after = [moved.get(key, position) for key, position, _ in pegs]
    assert all(a < b for a, b in pairwise(after))
    assert all(not out for key, _, out in pegs if key in moved)
    assert not any(map(too_fine, after))
    fresh = between(after[gap - 1] if gap else None, after[gap] if gap < len(after) else None)
    assert not too_fine(fresh)
    if not any(out for _, _, out in pegs):
        assert digits(fresh) <= 15


def pegs_around(pegs: Sequence[Peg], gap: int) -> Sequence[Peg]:
    first = max(i for i in range(gap) if pegs[i][2])
    last = min(i for i in range(gap, len(pegs)) if pegs[i][2])
    return pegs[first : last + 1]


def test_tidy_touches_nothing_where_there_is_room() -> None:
    assert tidy([(7, Decimal(1), False), (8, Decimal(2), False)], 1) == {}
    assert tidy([], 0) == {}


def test_tidy_takes_a_small_window_of_a_long_line() -> None:
    line = [(i, Decimal(i), False) for i in range(1000)]
    line[500] = (500, Decimal(f"499.{'0' * 23}1"), False)
    moved = tidy(line, 500)
    assert moved
    assert set(moved) <= {499, 500}


def test_tidy_between_two_that_are_out_and_touch_finds_no_room() -> None:
    line = [(1, Decimal(1), True), (2, Decimal(f"1.{'0' * 23}1"), True)]
    with pytest.raises(NoRoom, match=r"between 1 and 1\.0+1"):
        tidy(line, 1)


def test_tidy_between_two_that_are_out_and_close_leaves_them() -> None:
    line = [(1, Decimal(1), True), (2, Decimal(f"1.{'0' * 20}1"), True)]
    assert tidy(line, 1) == {}


@pytest.mark.parametrize(("gap", "moved"), [(1, {2: "2", 3: "3"}), (2, {3: "3"}), (3, {})])
def test_tidy_uses_the_last_free_places_between_two_that_are_out(gap: int, moved: dict[int, str]) -> None:
    ends = [(1, Decimal(0), True), (4, Decimal(f"5E-{SCALE}"), True)]
    crammed = [(2, Decimal(f"1E-{SCALE}"), False), (3, Decimal(f"2E-{SCALE}"), False)]
    line = [ends[0], *crammed, ends[1]]
    assert tidy(line, gap) == {key: Decimal(f"{units}E-{SCALE}") for key, units in moved.items()}
    with pytest.raises(NoRoom):
        tidy([*line[:3], (5, Decimal(f"3E-{SCALE}"), False), (6, Decimal(f"4E-{SCALE}"), False), ends[1]], gap)


@pytest.mark.parametrize(("left", "right"), [(True, False), (False, True), (True, True)])
def test_tidy_asks_for_more_of_the_line_before_it_crams(left: bool, right: bool) -> None:
    line = [(i, Decimal(f"{i}E-{SCALE}"), False) for i in range(40)]
    assert tidy(line, 20, more_left=left, more_right=right) is None
    between_pegs = [(-1, Decimal(-1), True), *line, (40, Decimal(1), True)]
    assert tidy(between_pegs, 21, more_left=left, more_right=right)


@settings(deadline=None)
@given(crowded(), st.integers(1, 30))
def test_what_a_stretch_of_the_line_decides_keeps_the_order_of_the_line(case: tuple[list[Peg], int], reach: int) -> None:
    pegs, gap = case
    first, last = max(0, gap - reach), min(len(pegs), gap + reach)
    try:
        moved = tidy(pegs[first:last], gap - first, more_left=first > 0, more_right=last < len(pegs))
    except NoRoom:
        return
    if moved is not None:
        after = [moved.get(key, position) for key, position, _ in pegs]
        assert all(a < b for a, b in pairwise(after))


@pytest.mark.parametrize("gap", [-1, 2])
def test_tidy_refuses_a_gap_outside_the_line(gap: int) -> None:
    with pytest.raises(ValueError, match="gap"):
        tidy([(1, Decimal(1), False)], gap)


@pytest.mark.parametrize("seed", range(3))
def test_a_place_found_by_tidy_fits_the_column(seed: int) -> None:
    """Near the largest magnitude an open end is no way out, so the window widens inwards."""
    top = random.Random(seed).randint(3, 9)
    line = [(i, Decimal(10**15 - top + i), False) for i in range(top)]
    moved = tidy(line, top)
    assert moved
    after = [moved.get(key, position) for key, position, _ in line]
    assert not too_fine(between(after[-1], None))
