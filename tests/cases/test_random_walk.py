"""While people move, postpone, cancel and add at random: each plan in the order that stood at the moment, one at a time."""

import random
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ordering import add, items, move
from ordering.errors import NotAllowed, NotInLine, NotMovable, StaleOrder
from ordering.model import After, Before, First, Last, NewItem, Place, State
from tests.cases import fleet
from tests.cases.beside import all_once, stream_beside
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.line import act, positions_fit, shown
from tests.conftest import Scale

PLANS = 10
REFUSALS = (NotAllowed, NotInLine, NotMovable, StaleOrder)


class Walker:
    """Somebody who does one thing after the other with one plan."""

    def __init__(self, kit: Kit, plan: str, seed: int, cancels: int) -> None:
        self.kit, self.plan, self.chance, self.cancels = kit, plan, random.Random(seed), cancels
        self.acts = self.refused = 0
        self.failure: Exception | None = None
        self.added: list[int] = []

    def walk(self, over: threading.Event) -> None:
        while not over.wait(self.chance.uniform(0, 0.05)):
            try:
                self.step(shown(self.kit, self.plan)[:12])
                self.acts += 1
            except REFUSALS:
                self.refused += 1
            except Exception as error:
                self.failure = error
                return

    def step(self, line: list[int]) -> None:
        kit, chance = self.kit, self.chance
        match chance.randrange(10):
            case 0:
                new = NewItem("probe.nap", [chance.uniform(0, 0.02)])
                self.added.append(act(kit, add.add, self.plan, new, actor=ACTOR, to=chance.choice((First(), Last()))).id)
            case 1 if self.cancels and line:
                self.cancels -= 1
                act(kit, items.cancel, chance.choice([*line, *self.out()]), actor=ACTOR)
            case 2 | 3 if line:
                until = datetime.now(UTC) + timedelta(seconds=chance.uniform(-0.1, 0.6))
                act(kit, items.postpone, chance.choice([*line, *self.out()]), until, actor=ACTOR)
            case _ if len(line) > 2:
                moving, other = chance.sample(line, 2)
                places: list[Place] = [First(), Last(), After(other), Before(other)]
                act(kit, move.move, moving, chance.choice(places), actor=ACTOR)

    def out(self) -> list[int]:
        head = self.kit.view(self.plan).head
        return [] if head is None else [head.id]


@both_brokers
@pytest.mark.timeout(300)
def test_in_the_order_that_stood(kit: Kit, scale: Scale) -> None:
    each, people = scale.rounds(100, least=10), 4
    seed = random.randrange(10**6)
    fleet.up(kit, scale)
    names = [f"plan-{number}" for number in range(PLANS)]
    for name in names:
        kit.plan(name, start=False)
        kit.add_many(name, [NewItem("probe.nap", [0.01]) for _ in range(each)], start=False)
    beside = stream_beside(kit, PLANS * each)
    walkers = [Walker(kit, names[number % PLANS], seed + number, cancels=scale.rounds(10, least=1)) for number in range(people)]
    over = threading.Event()
    threads = [threading.Thread(target=walker.walk, args=(over,), name=f"walker {walker.plan}") for walker in walkers]
    with fleet.sampler(kit):
        for thread in threads:
            thread.start()
        for name in names:
            kit.start(name)
        wait_until(
            lambda: (
                sum(note.item not in beside for note in kit.starts()) >= PLANS * each // 2
                and sum(walker.acts for walker in walkers) >= 4 * each
            ),
            120,
            "half of it runs",
        )
        over.set()
        for thread in threads:
            thread.join(30)
        assert [walker.failure for walker in walkers if walker.failure] == [], f"seed {seed}"
        kit.added += [item for walker in walkers for item in walker.added]
        for name in {row.name for row in unsettled(kit)}:
            kit.start(name)  # what was added, and perhaps postponed, behind a run's end
        wait_until(lambda: not unsettled(kit), 120, lambda: f"everything settles (seed {seed}): {unsettled(kit)[:10]}", pause=0.2)
    all_once(kit, beside)
    fleet.fed_in_order(kit)
    states = {item: kit.state(item) for item in kit.added}
    assert set(states.values()) <= {State.SUCCEEDED, State.CANCELLED}, f"seed {seed}"
    succeeded = [item for item, state in states.items() if state is State.SUCCEEDED]
    assert sorted(note.item for note in kit.ends() if note.item in set(succeeded)) == sorted(succeeded), f"seed {seed}"
    positions_fit(kit)
    checks(kit, in_order=False)


def unsettled(kit: Kit) -> list[Any]:
    return kit.sql("""
        select item.id, plan.name, item.state, item.not_before
        from relevo.item as item join relevo.plan as plan on plan.id = item.plan_id where item.settled_at is null
    """)
