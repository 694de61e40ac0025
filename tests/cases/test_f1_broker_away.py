"""F1: what is published while the broker is away goes out when it is back, and nothing goes out before its commit."""

import threading
import time

import pytest

from ordering import add
from ordering.model import NewItem, State
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.line import act
from tests.conftest import Scale

BACKLOG = "select count(*) from relevo.dispatch where published_at is null and claimed_at is null and ended_at is null"


@both_brokers
@pytest.mark.timeout(180)
def test_added_while_the_broker_is_away(kit: Kit, scale: Scale) -> None:
    proxy, url = kit.broker_proxy()
    kit.up(workers=1, slots=2, RELEVO_BROKER_URL=url)
    kit.plan("a", start=False, autostart=True)
    kit.plan("b", start=False, autostart=True)
    assert kit.sql(BACKLOG)[0][0] == 0
    proxy.refusing = True
    proxy.cut()
    away = time.monotonic() + scale.seconds(30, least=4)
    lines = {name: kit.add_many(name, [NewItem("probe.nap") for _ in range(count)], start=False) for name, count in (("a", 3), ("b", 2))}
    wait_until(lambda: kit.sql(BACKLOG)[0][0] == 2, 30, "a head of each plan waits for the broker")
    while time.monotonic() < away:
        assert kit.starts() == []
        assert kit.sql(BACKLOG)[0][0] == 2
        assert [kit.state(line[0]) for line in lines.values()] == [State.DISPATCHED, State.DISPATCHED]
        time.sleep(0.1)
    proxy.refusing = False
    kit.wait_done(60)
    assert kit.sql(BACKLOG)[0][0] == 0
    for line in lines.values():
        assert [note.item for note in kit.starts() if note.item in line] == line, "each once, in the order of its plan"
    checks(kit)


@both_brokers
def test_nothing_runs_before_its_commit(kit: Kit, scale: Scale) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("a", start=False, autostart=True)
    seconds = scale.seconds(3, least=1.5)
    kit.sql("""
        create function public.dawdle() returns trigger language plpgsql as $$
        begin perform pg_sleep(cast(new.kind as real)); return null; end $$
    """)
    kit.sql("""
        create constraint trigger dawdle after insert on relevo.item deferrable initially deferred
        for each row when (new.title = 'slow') execute function public.dawdle()
    """)
    slow = NewItem("probe.nap", title="slow", kind=str(seconds))
    before = time.monotonic()
    thread = threading.Thread(target=lambda: kit.added.append(act(kit, add.add, "a", slow, actor=ACTOR).id), name="adder")
    thread.start()
    while True:
        started = kit.starts()
        if time.monotonic() >= before + seconds:
            break
        assert started == []
        time.sleep(0.05)
    thread.join(60)
    kit.wait_done()
    assert kit.starts()[0].at >= before + seconds, "the body began after the commit had come through"
    checks(kit)


@both_brokers
def test_what_is_rolled_back_never_runs(kit: Kit) -> None:
    kit.up(workers=1, slots=2)
    kit.plan("a", start=False, autostart=True)
    with kit.engine.connect() as tx, tx.begin() as transaction:
        undone = add.add(tx, "a", NewItem("probe.nap", title="never"), actor=ACTOR).id
        transaction.rollback()
    kept = kit.add_many("a", [NewItem("probe.nap")], start=False)
    kit.wait_done()
    assert [note.item for note in kit.starts()] == kept
    assert undone not in kept
    assert kit.sql("select id from relevo.item where title = 'never'") == []
    checks(kit)
