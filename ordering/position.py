"""Positions of items in a line: exact decimals, so that a move writes one row.

Computed on integers, since decimal arithmetic would round to whatever context the calling thread has. Write a position
with `format(position, "f")`; `str()` may show an exponent.
"""

from collections.abc import Sequence
from decimal import Decimal

from ordering.errors import RelevoError

SCALE = 24  # most digits after the point; three drops into one gap cost about one, so the gap from 3 to 4 takes some 70
LIMIT = Decimal("1E15")  # positions lie strictly between -LIMIT and LIMIT: at most 41 characters with sign and point
COARSEST = 15  # exponent of the roundest number tried: that of LIMIT
TIDY_SCALE = 15
"""Digits that the narrowest tidied window may have; two doublings of a window allow one less, so that a wide one comes out
emptier. Simulated: this rewrites 1.9 to 4.6 rows per drop into one gap before a fixed item; other settings came to 120."""


class NoRoom(RelevoError):
    """No position is free there: items that are out, and so must not move, stand too close together."""


def too_fine(position: Decimal) -> bool:
    """Whether the column refuses the position: over SCALE digits after the point, or not within LIMIT."""
    if not -LIMIT < position < LIMIT:
        return True
    if int(position) == position:
        return False  # most are whole, and a bulk add asks for each
    number, parts = position.as_integer_ratio()
    return bool(number * 10**SCALE % parts)


def between(low: Decimal | None, high: Decimal | None) -> Decimal:
    """The shortest position strictly between two neighbours; None is an open end of the line.

    At an open end it is the next whole number (1 in an empty line), in a wide gap a round number in its middle half, else one
    with the fewest digits after the point and, of those, the nearest to the middle. It may be `too_fine`.
    Raises ValueError when low is not below high, or one of them is not finite.
    """
    if low is None or high is None:
        return _beside(low, high, 1)[0]
    _check(low, high)
    exponent = COARSEST
    while True:
        first, last = _multiples(low, high, exponent)
        # Of three multiples in the gap one is in its middle half. With fewer, a round number close to an end would win
        # (0 between -1 and a million), and the next drops beside it would soon need more digits.
        if last - first >= (2 if exponent > 0 else 0):
            (a, b), (c, d) = _ratio(low, exponent), _ratio(high, exponent)
            return _decimal((a * d + c * b + b * d) // (2 * b * d), exponent)
        exponent -= 1


def between_many(low: Decimal | None, high: Decimal | None, n: int, *, room: int = 1) -> list[Decimal]:
    """n increasing positions strictly between two neighbours, with as few digits as leave `room` steps of the last digit for each.

    None is an open end of the line, where whole numbers follow each other. They may be `too_fine`.
    Raises ValueError when low is not below high, one of them is not finite, or n is negative.
    """
    if n < 0:
        raise ValueError(f"n must be 0 or more, not {n}")
    if low is None or high is None:
        return _beside(low, high, n)
    _check(low, high)
    exponent = COARSEST
    while True:
        first, last = _multiples(low, high, exponent)
        steps = last - first + 2
        if steps >= room * (n + 1):
            return [_decimal(first - 1 + i * steps // (n + 1), exponent) for i in range(1, n + 1)]
        exponent -= 1


def spread(low: Decimal | None, high: Decimal | None, n: int) -> list[Decimal]:
    """Like `between_many`, but evenly placed: at most one digit longer, and no step over 5/4 of another."""
    return between_many(low, high, n, room=4)


def tidy(
    neighbours: Sequence[tuple[int, Decimal, bool]], gap: int, *, more_left: bool = False, more_right: bool = False
) -> dict[int, Decimal] | None:
    """New positions for the items around a gap, so that `between` finds a short one there.

    neighbours: (item id, position, fixed) in the order of the line, without the item about to be placed. Fixed ones keep
    their position and are not crossed. gap: the index at which the item will be placed, 0 to len(neighbours).
    more_left, more_right: whether the line goes on beyond that end of neighbours.
    Out: position by id, only for those that change; empty when there is room already; None when a longer stretch of the line is
    needed, never when both ends are the line's own. Order kept, all distinct.
    Raises NoRoom when the fixed items leave none, ValueError when gap is not in the line.
    """
    if not 0 <= gap <= len(neighbours):
        raise ValueError(f"gap must be from 0 to {len(neighbours)}, not {gap}")
    leftmost = next((i + 1 for i in range(gap - 1, -1, -1) if neighbours[i][2]), 0)
    beyond = next((i for i in range(gap, len(neighbours)) if neighbours[i][2]), len(neighbours))
    level = 0
    while True:
        start, stop = max(leftmost, gap - 2**level // 2), min(beyond, gap + 2**level // 2)
        if (start == 0 and more_left) or (stop == len(neighbours) and more_right):
            return None
        low = neighbours[start - 1][1] if start else None
        high = neighbours[stop][1] if stop < len(neighbours) else None
        # One place more than there are items: the one that `between` will find.
        places, scale = spread(low, high, stop - start + 1), max(0, TIDY_SCALE - level // 2)
        if (start, stop) == (leftmost, beyond) and not _fit(places, scale):
            places, scale = between_many(low, high, len(places)), SCALE
            if not _fit(places, scale):
                raise NoRoom(f"No position is free between {_text(low)} and {_text(high)}, where items are out: choose another place.")
        if _fit(places, scale):
            del places[gap - start]
            window = zip(neighbours[start:stop], places, strict=True)
            return {key: new for (key, old, _), new in window if new != old}
        level += 1


def _beside(low: Decimal | None, high: Decimal | None, n: int) -> list[Decimal]:
    """n whole numbers in a row, at an open end."""
    first = 1
    if low is not None:
        first = _multiples(low, low, 0)[0]
    elif high is not None:
        first = _multiples(high, high, 0)[1] - n + 1
    return [Decimal(first + i) for i in range(n)]


def _multiples(low: Decimal, high: Decimal, exponent: int) -> tuple[int, int]:
    """The first k above low and the last k below high, as multiples k * 10**exponent."""
    (a, b), (c, d) = _ratio(low, exponent), _ratio(high, exponent)
    return a // b + 1, -(-c // d) - 1


def _ratio(value: Decimal, exponent: int) -> tuple[int, int]:
    """value / 10**exponent, exactly."""
    number, parts = value.as_integer_ratio()
    return (number, parts * 10**exponent) if exponent > 0 else (number * 10**-exponent, parts)


def _decimal(number: int, exponent: int) -> Decimal:
    while exponent < 0 and number % 10 == 0:
        number, exponent = number // 10, exponent + 1
    return Decimal(f"{number}E{exponent}") if exponent < 0 else Decimal(number * 10**exponent)


def _fit(positions: Sequence[Decimal], scale: int) -> bool:
    return not any(too_fine(p) or len(_text(p).partition(".")[2]) > scale for p in positions)


def _text(position: Decimal | None) -> str:
    return "the end of the line" if position is None else format(position, "f")


def _check(low: Decimal, high: Decimal) -> None:
    if not (low.is_finite() and high.is_finite() and low < high):
        raise ValueError(f"position {low} is not below position {high}")
