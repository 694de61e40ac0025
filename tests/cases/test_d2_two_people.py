"""D2: many people rearrange one plan at once, a third of them by an order that is no longer so."""

import random
from functools import partial

from ordering import add, items, move
from ordering.errors import NotAllowed, NotInLine, NotMovable, RelevoError, StaleOrder
from ordering.model import After, Before, First, NewItem, State
from ordering.move import Seen
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit
from tests.cases.line import act, at_once, crowded, positions_fit, shown
from tests.conftest import Scale

REFUSALS = (StaleOrder, NotInLine, NotMovable, NotAllowed)


class Person:
    """Somebody who looks at the line, and acts on it at once or on what they saw long ago."""

    def __init__(self, kit: Kit, seed: int) -> None:
        self.kit, self.chance = kit, random.Random(seed)
        self.added: list[int] = []
        self.cancelled: list[int] = []
        self.refused: list[RelevoError] = []
        self.seen = shown(kit, "a")

    def act(self, requests: int) -> "Person":
        for number in range(requests):
            if number % 3:
                self.seen = shown(self.kit, "a")
            try:
                self.request()
            except REFUSALS as refusal:
                self.refused.append(refusal)
        return self

    def request(self) -> None:
        match self.chance.randrange(4):
            case 0:
                new = NewItem("probe.nap")
                self.added.append(act(self.kit, add.add, "a", new, actor=ACTOR, to=First()).id)
            case 1 if len(self.seen) > 10:
                gone = self.chance.choice(self.seen)
                act(self.kit, items.cancel, gone, actor=ACTOR)
                self.cancelled.append(gone)
            case _:
                moving = self.chance.choice(self.seen)
                gap = self.chance.randrange(len(self.seen) - 1)
                above, below = self.seen[gap : gap + 2]
                to, seen = (After(above), Seen(below)) if self.chance.random() < 0.5 else (Before(below), Seen(above))
                act(self.kit, move.move, moving, to, actor=ACTOR, seen=seen)


def test_a_crowd_at_one_line(kit: Kit, scale: Scale) -> None:
    people, requests = 20, scale.rounds(25, least=5)
    seed = random.randrange(10**6)
    crowded(kit)
    kit.plan("a", start=False)
    before = kit.add_many("a", [NewItem("probe.nap") for _ in range(30)], start=False)
    crowd = [Person(kit, seed + number) for number in range(people)]
    results = at_once([partial(person.act, requests) for person in crowd])
    assert [each for each in results if isinstance(each, Exception)] == [], f"seed {seed}"

    added = [item for person in crowd for item in person.added]
    cancelled = [item for person in crowd for item in person.cancelled]
    line = shown(kit, "a")
    assert len(set(cancelled)) == len(cancelled), "nothing is cancelled twice"
    assert sorted(line) == sorted({*before, *added} - set(cancelled))
    assert line == shown(kit, "a")
    positions_fit(kit)
    assert any(person.refused for person in crowd), f"nobody was ever late, so nothing was shown (seed {seed})"

    kit.added += added
    kit.up(workers=1, slots=2)
    kit.start("a")
    kit.wait_done(60, wanted=line)
    assert [note.item for note in kit.starts()] == line, "run in the order that was shown"
    assert {kit.state(item) for item in cancelled} <= {State.CANCELLED}
    checks(kit)


def test_stale_neighbours_are_refused_with_the_fresh_order(kit: Kit) -> None:
    kit.plan("a", start=False)
    one, two, three, four, five = kit.add_many("a", [NewItem("probe.nap") for _ in range(5)], start=False)
    kit.move(four, After(one))  # somebody else's drop into the gap that another is looking at
    fresh = [one, four, two, three, five]
    for to, seen in ((After(one), Seen(two)), (Before(two), Seen(one)), (First(), Seen(two)), (After(five), Seen(three))):
        refusal = refused(kit, five if to != After(five) else one, to, seen)
        assert isinstance(refusal, StaleOrder)
        assert refusal.order == fresh == shown(kit, "a")
        assert str(two) in str(refusal)
    act(kit, items.cancel, two, actor=ACTOR)
    for to in (After(two), Before(two), After(10**9)):
        assert isinstance(refused(kit, five, to, None), NotInLine)
    assert isinstance(refused(kit, two, First(), None), NotMovable)
    assert shown(kit, "a") == [one, four, three, five]
    kit.move(five, Before(three))
    assert shown(kit, "a") == [one, four, five, three]
    checks(kit)


def refused(kit: Kit, item: int, to: After | Before | First, seen: Seen | None) -> Exception | int:
    """What a move is answered with."""
    (result,) = at_once([lambda: act(kit, move.move, item, to, actor=ACTOR, seen=seen).id])
    return result
