"""A line that people shuffle for long keeps the order of a plain list, in positions of bounded size."""

import random
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise

import pytest

from ordering.position import NoRoom, between, tidy, too_fine

READ = 128


class Line:
    """Positions kept as the database keeps them; `order` is a plain list moved by pop and insert."""

    def __init__(self, size: int, out: frozenset[int] = frozenset()) -> None:
        self.order = list(range(size))
        self.out = out
        self.positions = {key: Decimal(key + 1) for key in self.order}
        self.tidyings = 0
        self.rewritten = 0
        self.largest = 0

    def drop(self, key: int, index: int) -> None:
        """Move, or add, the item so that it stands at index."""
        if key in self.positions:
            self.order.remove(key)
        position = self.place(index)
        if too_fine(position):
            self.make_room(index)
            position = self.place(index)
        self.positions[key] = position
        self.order.insert(index, key)

    def place(self, index: int) -> Decimal:
        low = self.positions[self.order[index - 1]] if index else None
        high = self.positions[self.order[index]] if index < len(self.order) else None
        return between(low, high)

    def make_room(self, index: int) -> None:
        read, moved = READ, None
        while moved is None:
            first, last = max(0, index - read), min(len(self.order), index + read)
            rows = [(key, self.positions[key], key in self.out) for key in self.order[first:last]]
            more_right = last < len(self.order)
            moved = tidy(rows, index - first, more_left=first > 0, more_right=more_right)
            read *= 8
        self.positions.update(moved)
        self.tidyings += 1
        self.rewritten += len(moved)
        self.largest = max(self.largest, len(moved))

    def check(self) -> None:
        assert sorted(self.positions, key=self.positions.__getitem__) == self.order
        line = [self.positions[key] for key in self.order]
        assert all(a < b for a, b in pairwise(line))
        assert all(len(format(position, "f")) <= 64 for position in line)
        assert not any(map(too_fine, line))
        assert all(self.positions[key] == key + 1 for key in self.out)


def last_between_first_and_second(line: Line, _: random.Random) -> None:
    line.drop(line.order[-1], 1)


def swap_second_and_third(line: Line, _: random.Random) -> None:
    line.drop(line.order[2], 1)


def append(line: Line, _: random.Random) -> None:
    line.drop(len(line.order), len(line.order))


def prepend_behind_the_head(line: Line, _: random.Random) -> None:
    line.drop(len(line.order), 1)


def prepend(line: Line, _: random.Random) -> None:
    line.drop(len(line.order), 0)


def anywhere(line: Line, dice: random.Random) -> None:
    movable = [key for key in line.order if key not in line.out]
    line.drop(dice.choice(movable), dice.randrange(len(line.order)))


def around_a_crowded_place(line: Line, dice: random.Random) -> None:
    movable = [key for key in line.order if key not in line.out]
    line.drop(dice.choice(movable), min(len(line.order) - 1, 20 + int(dice.expovariate(1))))


Act = Callable[[Line, random.Random], None]


@pytest.mark.parametrize(
    ("act", "times", "size", "out", "rows_per_drop"),
    [
        (last_between_first_and_second, 2000, 3, (), 1),
        (last_between_first_and_second, 2000, 50, (0,), 2),
        (last_between_first_and_second, 2000, 3000, (0,), 2),
        (swap_second_and_third, 2000, 3, (0,), 1),
        (swap_second_and_third, 2000, 4, (0, 3), 1),
        (swap_second_and_third, 2000, 50, (0,), 1),
        (append, 5000, 1, (0,), 0),
        (prepend, 5000, 1, (), 0),
        (prepend_behind_the_head, 5000, 2, (0,), 4),
        (prepend_behind_the_head, 5000, 2, (0, 1), 4),
        (anywhere, 10000, 30, (), 1),
        (anywhere, 10000, 200, (0, 90, 91, 150), 1),
        (around_a_crowded_place, 10000, 200, (0, 18, 40), 2),
    ],
)
def test_a_shuffled_line_is_the_model_list(
    act: Act,
    times: int,
    size: int,
    out: tuple[int, ...],
    rows_per_drop: int,
) -> None:
    line = Line(size, frozenset(out))
    dice = random.Random(act.__name__)
    for turn in range(times):
        act(line, dice)
        if turn % 100 == 0:
            line.check()
    line.check()
    assert line.rewritten <= rows_per_drop * times, f"{line.tidyings} tidyings rewrote {line.rewritten} rows"
    assert line.largest <= 4096


def test_every_move_of_six_is_pop_and_insert() -> None:
    for source in range(6):
        for target in range(6):
            line = Line(6)
            expected = list(range(6))
            expected.insert(target, expected.pop(source))
            line.drop(source, target)
            assert line.order == expected
            line.check()


def test_items_that_are_out_are_never_crossed_even_when_no_room_is_left() -> None:
    line = Line(3, frozenset({0, 1}))
    line.positions[1] = Decimal(f"1.{'0' * 23}1")
    line.out = frozenset({0})
    line.drop(2, 1)
    assert line.order == [0, 2, 1]
    line.out = frozenset({0, 2, 1})
    line.positions = {0: Decimal(1), 2: Decimal(f"1.{'0' * 23}1"), 1: Decimal(2)}
    with pytest.raises(NoRoom):
        line.drop(3, 1)
    assert line.positions[2] == Decimal(f"1.{'0' * 23}1")
