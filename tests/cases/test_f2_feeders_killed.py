"""F2: kill -9 of feeders at any moment while facts fan out: each effect once for each fact and each who hears it, nothing left claimed."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy.orm import Session

from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.conftest import Scale
from workers import emit

HEAR = {"case.happened": {"probe.draw", "probe.notify", "probe.count"}, "case.other": {"probe.notify"}}
PAUSE = 0.5  # seconds between two kills, on average; a feeder takes about as long to start


@contextmanager
def emitting(kit: Kit, count: int, seconds: float) -> Iterator[dict[int, str]]:
    """Emit `count` facts within about so many seconds, in transactions of one to five, meanwhile; their types by their ids.

    Each has a key. Some transactions are rolled back and done again, some are said twice, and between them are pauses.
    """
    made: dict[int, str] = {}
    chance = random.Random(2)
    failed: list[BaseException] = []

    def run() -> None:
        number = 0
        while number < count:
            wanted = range(number, min(count, number + chance.randint(1, 5)))
            for commits in chance.choice([(True,), (True,), (False, True), (True, True)]):
                with Session(kit.engine) as session:
                    emitted = {emit(session, type, {"n": each}, key=str(each)): type for each in wanted for type in [chance_type(each)]}
                    if commits:
                        session.commit()
                        made.update(emitted)
                    else:
                        session.rollback()
            number = wanted.stop
            time.sleep(chance.expovariate(count / seconds / 3))

    def chance_type(each: int) -> str:
        return "case.other" if each % 4 == 0 else "case.happened"

    def guarded() -> None:
        try:
            run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=guarded, name="emitter")
    thread.start()
    try:
        yield made
    finally:
        thread.join(seconds * 5 + 60)
    assert not thread.is_alive()
    assert not failed, failed


@both_brokers
@pytest.mark.timeout(600)
def test_each_effect_once(kit: Kit, scale: Scale) -> None:
    catalogue = str(kit.catalogue(("tests.cases.probe_tasks", "tests.cases.fact_tasks"), name="facts.toml"))
    kit.worker(4, ready=False, RELEVO_CATALOGUE=catalogue)
    feeders = [kit.feeder(ready=False) for _ in range(2)]
    for service in kit.services:
        service.wait_ready()
    kills, facts = scale.rounds(100, least=6), scale.rounds(1000, least=60)
    chance = random.Random(1)
    with emitting(kit, facts, kills * PAUSE * 1.5) as made:
        for _ in range(kills):
            time.sleep(chance.uniform(0, 2 * PAUSE))
            # One of the two, at any moment of its life: while it starts, feeds, publishes, or notes what it has published.
            index = chance.randrange(2)
            feeders[index].kill()
            feeders[index].close()
            feeders[index] = kit.feeder(ready=False)
    assert len(made) == facts

    unsettled = "select count(*) from relevo.item where settled_at is null"
    wait_until(lambda: kit.sql(unsettled)[0][0] == 0, 40, lambda: f"all is drained; {kit.sql(unsettled)}\n{kit.logs()[-5000:]}")

    became = kit.sql("select id, task, fact_id, args, state from relevo.item")
    heard = Counter((row.fact_id, row.task) for row in became)
    assert heard == Counter((fact, task) for fact, type in made.items() for task in HEAR[type]), "one item for each who hears it"
    assert {row.state for row in became} == {"succeeded"}
    assert Counter(note.item for note in kit.starts()) == Counter(row.id for row in became), "one effect of each item"
    assert kit.sql("select count(*) from relevo.fact")[0][0] == facts, "nothing of what was rolled back"
    assert kit.sql("select id from relevo.dispatch where ended_at is null") == [], "nothing is left claimed or out"
    wait_until(lambda: kit.messages() == 0, 30, "no message is left over")
    for feeder in feeders:
        feeder.wait_ready()
    checks(kit)
