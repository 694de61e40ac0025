"""D7: what is added in the very moment in which its plan runs empty, or is unblocked, starts by itself."""

import random
import time
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from ordering import add, decision
from ordering.model import First, NewItem, State
from tests.cases import commandline
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.line import act, at_once
from tests.conftest import Scale

UNAIDED = 8.0  # seconds within which an item that is due starts with nobody's help
BODY = 0.03
SWING = 0.02


def append(kit: Kit, seconds: float, *, wait: float = 0.0) -> int:
    """Add one item and nothing else: no start, no feed."""
    time.sleep(wait)
    item = act(kit, add.add, "a", NewItem("probe.nap", [seconds]), actor=ACTOR).id
    kit.added.append(item)
    return item


def decide(kit: Kit, item: int, *, skipped: bool, wait: float) -> int:
    """Skip or resolve the item; its id."""
    time.sleep(wait)
    return act(kit, decision.skip if skipped else decision.resolve, item, actor=ACTOR, note="looked at it").id


@both_brokers
@pytest.mark.timeout(900)
def test_appended_while_the_only_item_ends(kit: Kit, scale: Scale) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    kit.up(workers=1, slots=2)
    kit.plan("a", start=False, autostart=True)
    for number in range(scale.rounds(500, least=25)):
        first = append(kit, BODY)
        start = kit.wait_start(first, UNAIDED)
        time.sleep(max(0.0, start.at + BODY + chance.uniform(-SWING, SWING) - time.monotonic()))
        second = append(kit, 0)
        kit.wait_start(second, UNAIDED)
        kit.wait_done(UNAIDED, wanted=[first, second])
        wait_until(lambda: kit.view("a").status == "drained", UNAIDED, f"round {number} ends (seed {seed})")
    assert [len(kit.starts(item)) for item in kit.added] == [1] * len(kit.added), f"seed {seed}"
    checks(kit)


@both_brokers
@pytest.mark.timeout(900)
def test_appended_while_the_line_is_unblocked(kit: Kit, scale: Scale) -> None:
    seed = random.randrange(10**6)
    chance = random.Random(seed)
    kit.up(workers=1, slots=2)
    kit.plan("a", start=False, autostart=True)
    for number in range(scale.rounds(200, least=10)):
        failed = act(kit, add.add, "a", NewItem("probe.fail"), actor=ACTOR).id
        kit.wait_state(failed, State.FAILED)
        decided, added = at_once(
            [
                partial(decide, kit, failed, skipped=bool(number % 2), wait=chance.uniform(0, SWING)),
                partial(append, kit, 0, wait=chance.uniform(0, SWING)),
            ]
        )
        assert decided == failed, f"seed {seed}"
        assert isinstance(added, int), f"seed {seed}: {added}"
        kit.wait_start(added, UNAIDED)
        kit.wait_done(UNAIDED, wanted=[added])
    checks(kit)


@both_brokers
def test_a_head_of_tomorrow_holds_the_line_until_another_goes_first(kit: Kit) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("a")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    late, two, three = kit.add_many("a", [NewItem("probe.nap", not_before=tomorrow), NewItem("probe.nap"), NewItem("probe.nap")])
    deadline = time.monotonic() + 2.5  # two rounds of the feeder
    while time.monotonic() < deadline:
        assert kit.starts() == [], "the line waits for its head-to-be"
        time.sleep(0.1)
    out, _ = commandline.call(kit, "plan", "show", "a")
    assert f"not before {tomorrow:%Y-%m-%dT%H:%M:%SZ}" in out
    kit.move(three, First())
    kit.wait_start(three, UNAIDED)
    kit.wait_done(UNAIDED, wanted=[three])
    assert kit.starts(two) == [], "the line waits again"
    assert kit.state(late) is State.WAITING
    kit.move(two, First())
    kit.wait_start(two, UNAIDED)
    kit.wait_done(UNAIDED, wanted=[two])
    checks(kit, in_order=False)
