"""D5: many feeders and workers, and somebody who holds a head's row: each plan in its order, one at a time, nothing twice."""

import random
import threading
import time

import pytest

from ordering.model import NewItem
from tests.cases import fleet
from tests.cases.beside import all_once, stream_beside
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.conftest import Scale

PLANS = 10


@both_brokers
@pytest.mark.timeout(300)
def test_each_plan_in_its_order(kit: Kit, scale: Scale) -> None:
    each = scale.rounds(100, least=8)
    fleet.up(kit, scale)
    chance = random.Random(5)
    lines = {}
    for number in range(PLANS):
        kit.plan(f"plan-{number}", start=False)
        new = [NewItem("probe.nap", [chance.uniform(0.005, 0.03)]) for _ in range(each)]
        lines[f"plan-{number}"] = kit.add_many(f"plan-{number}", new, start=False)
    beside = stream_beside(kit, PLANS * each)
    over = threading.Event()
    holder = threading.Thread(target=hold_heads, args=(kit, over, scale.seconds(2, least=0.5)), name="holder")
    holder.start()
    try:
        with fleet.sampler(kit):
            for name in lines:
                kit.start(name)
            kit.wait_done(200)
    finally:
        over.set()
        holder.join(60)
    assert not holder.is_alive()

    fleet.fed_in_order(kit)
    all_once(kit, beside)
    starts = [note.item for note in kit.starts() if note.item not in beside]
    assert len(starts) == len(set(starts)) == PLANS * each
    for line in lines.values():
        assert [item for item in starts if item in set(line)] == line
    wait_until(lambda: all(kit.view(name).status == "drained" for name in lines), 30, "every run ends")
    checks(kit)


def hold_heads(kit: Kit, over: threading.Event, seconds: float) -> None:
    """Now and then hold the row of a head, and now and then of the one that comes next, as a person in psql does."""
    wanted = ["at_head", "state = 'waiting'"]
    while not over.is_set():
        with kit.psql() as other:
            wanted.reverse()
            other.execute(f"select id from relevo.item where {wanted[0]} order by plan_id, position limit 1 for update")
            time.sleep(seconds)
        over.wait(seconds / 2)
