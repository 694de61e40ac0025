"""The broker is flushed, restarted or stopped in the middle: nothing is lost or doubled, and publishing catches up by itself."""

import time
from collections.abc import Callable

import pytest

from ordering.model import DEFAULT_QUEUE, NewItem
from tests import servers
from tests.cases.beside import all_once, stream_beside
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.cases.restartable import Restartable
from tests.conftest import Scale

PLANS, ITEMS = 4, 8


def begin(kit: Kit) -> frozenset[int]:
    """Plans that are in the middle of their work, and a stream beside them; its items."""
    for plan in range(PLANS):
        kit.plan(f"p{plan}", start=False)
        kit.add_many(f"p{plan}", [NewItem("probe.nap", [0.2]) for _ in range(ITEMS)])
    beside = stream_beside(kit, 300)
    wait_until(lambda: sum(note.item not in beside for note in kit.ends()) >= PLANS, 30, "some have ended")
    return beside


def caught_up(kit: Kit, beside: frozenset[int]) -> None:
    """Everything ran once, and what is added now starts at once."""
    kit.wait_done(90)
    assert all(kit.outcomes(item) == ["succeeded"] for item in kit.added)
    all_once(kit, beside)
    assert len(kit.starts()) == PLANS * ITEMS + len(beside)
    last = kit.add("p0", "probe.nap", 0)
    kit.wait_done()
    assert kit.sends(last) == [1], "it was not missed first"
    assert all(service.process.poll() is None for service in kit.services)
    checks(kit)


def flushed(server: Restartable, scale: Scale) -> None:
    servers.flush(server.url)


def restarted(server: Restartable, scale: Scale) -> None:
    server.restart()


def stopped(server: Restartable, scale: Scale) -> None:
    server.stop()
    time.sleep(scale.seconds(30, least=3))
    server.start()


@pytest.mark.parametrize("harm", [flushed, restarted, stopped])
def test_valkey_in_the_middle(own_kit: Kit, own_valkey: Restartable, scale: Scale, harm: Callable[[Restartable, Scale], None]) -> None:
    own_kit.up(workers=2, slots=2)
    beside = begin(own_kit)
    harm(own_valkey, scale)
    caught_up(own_kit, beside)


@pytest.mark.parametrize("broker", ["rabbit"], indirect=True)
@pytest.mark.parametrize("forgets", [True, False])
def test_rabbitmq_in_the_middle(kit: Kit, scale: Scale, forgets: bool) -> None:
    """Out of reach as while it restarts; with a queue that is gone afterwards, and with one that was kept."""
    proxy, url = kit.broker_proxy()
    kit.up(workers=2, slots=2, RELEVO_BROKER_URL=url)
    beside = begin(kit)
    proxy.refusing = True
    proxy.cut()
    time.sleep(scale.seconds(30, least=3))
    if forgets:
        servers.delete_queues(kit.broker_url, DEFAULT_QUEUE)
    proxy.refusing = False
    caught_up(kit, beside)
