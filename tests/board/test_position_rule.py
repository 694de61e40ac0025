"""The positions that a drag foretells are those that Postgres will be given: the script's rule against ordering/position.py."""

import random
from decimal import Decimal

from app import assets
from ordering import position
from tests.board.conftest import Visit
from tests.board.site import Site

ASK = """
async ([module, cases]) => {
    const { between } = await import(module);
    return cases.map(([low, high, n]) => between(low, high, n));
}
"""


def number(chance: random.Random) -> Decimal:
    return Decimal(chance.randrange(-(10**6), 10**6)).scaleb(-chance.choice([0, 0, 0, 1, 2, 5, 12, 24]))


def test_the_script_foretells_what_ordering_gives(site: Site, visit: Visit) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    cases: list[tuple[Decimal | None, Decimal | None, int]] = [
        (None, None, 1), (None, Decimal(1), 2), (Decimal(14), None, 1), (Decimal("-2.5"), None, 3), (Decimal(3), Decimal(4), 1),
        (Decimal(5), Decimal(6), 2), (Decimal("4.5"), Decimal(5), 3), (Decimal(-1), Decimal(10**6), 1), (Decimal("0.1"), Decimal("0.2"), 9),
        (Decimal("1E-24"), Decimal("2E-24"), 1), (Decimal(-(10**14)), Decimal(10**14), 1),
    ]  # fmt: skip
    for _ in range(500):
        low, high = sorted([number(chance), number(chance)])
        if low < high:
            cases.append((low, high, chance.randrange(1, 8)))
    told = [(None if low is None else f"{low:f}", None if high is None else f"{high:f}", n) for low, high, n in cases]
    page = visit("/", live=False)
    found = page.evaluate(ASK, [assets.address("position.js"), told])
    expected = [[f"{each:f}" for each in position.between_many(low, high, n)] for low, high, n in cases]
    assert found == expected, f"seed {seed}"
