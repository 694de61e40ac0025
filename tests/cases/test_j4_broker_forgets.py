"""J4: what the broker has forgotten is sent again, once each."""

import redis

from ordering.model import DEFAULT_QUEUE
from tests import servers
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.cases.restartable import Restartable

HEADS = 3


def three_heads(kit: Kit) -> list[int]:
    """Three heads in the broker, and nobody who takes them."""
    kit.feeder()
    heads = []
    for number in range(HEADS):
        kit.plan(f"p{number}")
        heads.append(kit.add(f"p{number}", "probe.nap", 0))
    wait_until(lambda: kit.messages() == HEADS, 15, "three heads in the broker")
    published = "select count(*) from relevo.dispatch where published_at is not null"
    wait_until(lambda: kit.sql(published)[0][0] == HEADS, 15, "they are marked as published")
    return heads


def sent_again(kit: Kit, heads: list[int]) -> None:
    """The worker gets all of them, each once, and each is counted as sent twice."""
    kit.worker(HEADS)
    # A message that the broker was given counts as lost after 10 s, looked at once a second.
    kit.wait_done()
    assert [len(kit.starts(head)) for head in heads] == [1] * HEADS
    sends = kit.sql("select d.sends from relevo.dispatch d")
    assert [row.sends for row in sends] == [2] * HEADS, "each was sent again, and once only"
    checks(kit)


@both_brokers
def test_flushed(kit: Kit) -> None:
    heads = three_heads(kit)
    if kit.broker_url.startswith("amqp"):
        servers.delete_queues(kit.broker_url, DEFAULT_QUEUE)
    else:
        servers.flush(kit.broker_url)
    assert kit.messages() == 0
    sent_again(kit, heads)


def test_evicted_by_a_cache_that_shares_it(own_kit: Kit, own_valkey: Restartable) -> None:
    heads = three_heads(own_kit)
    client = redis.Redis.from_url(own_valkey.url)
    try:
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("maxmemory", "5mb")
        number = 0
        while own_kit.messages():
            client.set(f"junk:{number}", b"x" * 100_000)
            number += 1
            assert number < 5000, "nothing is evicted"
        sent_again(own_kit, heads)
    finally:
        client.close()


def test_start_up_warns_of_a_policy_that_throws_away(own_kit: Kit, own_valkey: Restartable) -> None:
    client = redis.Redis.from_url(own_valkey.url)
    try:
        client.config_set("maxmemory-policy", "allkeys-lru")
    finally:
        client.close()
    feeder = own_kit.feeder()
    wait_until(lambda: "set maxmemory-policy to noeviction" in feeder.text(), 15, "the feeder warns")
