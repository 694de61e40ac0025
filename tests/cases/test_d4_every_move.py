"""D4: an item lands exactly where it was dropped, upwards and downwards, at the top, at the bottom and onto itself."""

import random

import pytest

from ordering import move
from ordering.model import After, Before, First, Last, NewItem, Place
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit
from tests.cases.line import act, shown
from tests.conftest import Scale


def places(rest: list[int], target: int) -> list[Place]:
    """Every way to say: at index `target` of the line without the moving item."""
    said: list[Place] = []
    if target == 0:
        said.append(First())
    else:
        said.append(After(rest[target - 1]))
    if target == len(rest):
        said.append(Last())
    else:
        said.append(Before(rest[target]))
    return said


def drop(kit: Kit, model: list[int], origin: int, target: int, way: int, page: int) -> None:
    """One move by the verb, compared with the list's pop and insert."""
    moving = model[origin]
    rest = model[:origin] + model[origin + 1 :]
    before = rows(kit)
    events = len(kit.events("move"))
    act(kit, move.move, moving, places(rest, target)[way], actor=ACTOR)
    rest.insert(target, moving)
    model[:] = rest
    assert shown(kit, "a", page) == model == shown(kit, "a", page), f"from {origin} to {target}"
    changed = {item for item, place in rows(kit).items() if place != before[item]}
    assert changed == (set() if origin == target else {moving}), "a move writes one row, and none where nothing moves"
    assert len(kit.events("move")) == events + (origin != target), "only a move is an event"


def rows(kit: Kit) -> dict[int, object]:
    """What identifies each item's stored row: its position and the transaction that wrote it."""
    return {row.id: (row.position, row.xmin) for row in kit.sql("select id, position, xmin::text from relevo.item")}


@pytest.mark.parametrize("way", [0, 1])
def test_all_36_moves_of_six_items(kit: Kit, way: int) -> None:
    kit.plan("a", start=False)
    model = kit.add_many("a", [NewItem("probe.nap") for _ in range(6)], start=False)
    for origin in range(6):
        for target in range(6):
            drop(kit, model, origin, target, way, page=6)
    for moving in list(model):
        for onto in (After(moving), Before(moving)):
            events = len(kit.events("move"))
            act(kit, move.move, moving, onto, actor=ACTOR)
            assert shown(kit, "a") == model
            assert len(kit.events("move")) == events, "onto itself"
    checks(kit)


def test_moves_in_a_list_of_200(kit: Kit, scale: Scale) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    kit.plan("a", start=False)
    model = kit.add_many("a", [NewItem("probe.nap") for _ in range(200)], start=False)
    ends = [(0, 199), (199, 0), (120, 0), (0, 120), (100, 101), (101, 100), (199, 198), (150, 150)]
    chosen = [(chance.randrange(200), chance.randrange(200)) for _ in range(scale.rounds(400, least=20))]
    for origin, target in ends + chosen:
        drop(kit, model, origin, target, chance.randrange(2), page=50)
    checks(kit)
