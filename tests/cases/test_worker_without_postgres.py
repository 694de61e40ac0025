"""A worker that reaches the broker and not Postgres takes no messages from one that reaches both, and says so once."""

import time

from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.conftest import Scale

LOST, BACK = "Postgres is out of reach", "Postgres is back"


@both_brokers
def test_it_leaves_the_messages_to_others(kit: Kit, scale: Scale) -> None:
    proxy, url = kit.database_proxy()
    kit.feeder()
    cut_off = kit.worker(slots=4, RELEVO_DATABASE_URL=url)
    pids = set(cut_off.pool())
    for name in "abcd":
        kit.plan(name)
    for name in "abcd":
        kit.add(name, "probe.nap", 0)
    kit.wait_done()
    other = kit.worker(slots=1)
    proxy.refusing = True
    proxy.cut()
    wait_until(lambda: LOST in cut_off.text(), 30, "the worker notices that Postgres is away")
    time.sleep(2)  # the question that a Redis was asked before has its answer: it waits for a message for a second
    lost = [kit.add(name, "probe.nap", 0) for _ in range(scale.rounds(20, least=3)) for name in "abcd"]
    kit.wait_done()
    assert all(kit.sends(item) == [1] for item in lost), "a message that somebody held would be sent again after 10 s"
    assert {start.pid for item in lost for start in kit.starts(item)} <= set(other.pool())
    proxy.refusing = False
    wait_until(lambda: BACK in cut_off.text(), 30, "the worker notices that Postgres is back")
    assert (cut_off.text().count(LOST), cut_off.text().count(BACK)) == (1, 1)
    other.term()
    other.wait(40)
    again = [kit.add(name, "probe.nap", 0) for name in "abcd"]
    kit.wait_done()
    assert {start.pid for item in again for start in kit.starts(item)} <= pids
    checks(kit)
