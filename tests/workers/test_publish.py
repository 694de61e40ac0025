"""The publisher: what it sends, how long it may take, and what it survives (rule 5; F1, J1, J4, M3)."""

import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest
import redis
from celery import Celery

from tests import servers
from tests.patience import Stopwatch
from tests.workers.proxy import Proxy
from tests.workers.worker_process import until
from workers.publish import REST_SECONDS, BrokerUnavailable, Publisher

BOUND = 3.0  # seconds, and a little for a machine that does other things too
SLACK = 4.0

Through = Callable[[str], tuple[Proxy, str]]


Publishing = Callable[[str], Publisher]


@pytest.fixture
def publishing() -> Iterator[Publishing]:
    """Called with the broker's URL: a publisher, closed when the test has ended, however it does."""
    with ExitStack() as stack:
        yield lambda url: stack.enter_context(closing(Publisher(Celery("test", broker=url))))


@pytest.fixture
def publisher(broker: str, publishing: Publishing) -> Publisher:
    return publishing(broker)


def send(publisher: Publisher, queue: str, dispatch_id: str = "1") -> None:
    publisher.send(dispatch_id, "a.task", queue, "(1, 'é')", "{}")


def refused(publisher: Publisher, queue: str, call: Callable[[Publisher, str], object] = send) -> str:
    """The one sentence of a call that has to fail within the bound."""
    with Stopwatch() as watch, pytest.raises(BrokerUnavailable) as caught:
        call(publisher, queue)
    assert watch.seconds < BOUND + SLACK
    said = str(caught.value)
    assert said.endswith(".")
    assert "\n" not in said
    assert "guest:guest" not in said, "the password is not shown"
    return said


def works(publisher: Publisher, queue: str) -> bool:
    try:
        send(publisher, queue)
    except BrokerUnavailable:
        return False
    return True


def test_a_message_is_a_pointer_that_flower_can_read(publisher: Publisher, broker: str, queue: str) -> None:
    send(publisher, queue, "dispatch-7")
    app = Celery("reader", broker=broker)
    with app.connection_for_read() as connection, connection.channel() as channel:
        message = channel.basic_get(queue, no_ack=True)
        if broker.startswith("amqp"):
            message = channel.message_to_python(message)
        assert message.decode() == [[], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]
        assert message.content_type == "application/json"
        assert message.headers["id"] == message.properties["correlation_id"] == "dispatch-7"
        assert (message.headers["task"], message.headers["argsrepr"], message.headers["kwargsrepr"]) == ("a.task", "(1, 'é')", "{}")


def test_odd_and_long_texts_are_sent(publisher: Publisher, queue: str) -> None:
    publisher.send("1", "a.task", queue, "\ud800 \x00 \N{PILE OF POO}", "x" * 100_000)
    assert publisher.queue_sizes([queue]) == {queue: 1}


def test_sizes_count_what_is_there(publisher: Publisher, queue: str) -> None:
    missing = servers.fresh_name("missing")
    assert publisher.queue_sizes([queue, missing]) == {queue: 0, missing: 0}
    for _ in range(3):
        send(publisher, queue)
    assert publisher.queue_sizes([queue, missing, queue]) == {queue: 3, missing: 0}


def test_sizes_count_what_is_unacknowledged_on_redis(broker_url: str, queue: str, publishing: Publishing) -> None:
    publisher = publishing(broker_url)
    client = redis.Redis.from_url(broker_url)
    try:
        for number, route in enumerate([queue, queue, "another"]):
            client.hset("unacked", f"tag{number}", json.dumps([{"body": ""}, "", route]))
        client.hset("unacked", "foreign", "no json")
        client.lpush(f"{queue}\x06\x166", "of another priority")
        send(publisher, queue)
        assert publisher.queue_sizes([queue, "another", "none"]) == {queue: 4, "another": 1, "none": 0}
    finally:
        client.close()


@pytest.mark.parametrize("scheme", ["redis://127.0.0.1:{}/0", "amqp://guest:guest@127.0.0.1:{}//"])
def test_a_broker_that_is_not_there_is_said_at_once(scheme: str, publishing: Publishing) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        publisher = publishing(scheme.format(unused.getsockname()[1]))
        assert "refused" in refused(publisher, "q")
        assert "refused" in refused(publisher, "q", lambda made, queue: made.queue_sizes([queue]))


def test_a_broker_that_swallows_everything_is_given_up(broker: str, through_proxy: Through, queue: str, publishing: Publishing) -> None:
    """With a kept connection and without one; afterwards the next call works."""
    between, url = through_proxy(broker)
    publisher = publishing(url)
    send(publisher, queue)
    between.swallowing = True
    refused(publisher, queue)
    refused(publisher, queue)
    refused(publisher, queue, lambda made, name: made.queue_sizes([name]))
    between.swallowing = False
    until(lambda: works(publisher, queue), REST_SECONDS + 15, "the broker is asked again")
    assert publisher.queue_sizes([queue])[queue] >= 2


def test_a_connection_that_died_meanwhile_is_replaced_unnoticed(
    broker: str, through_proxy: Through, queue: str, publishing: Publishing
) -> None:
    between, url = through_proxy(broker)
    publisher = publishing(url)
    for number in range(1, 4):
        send(publisher, queue)
        between.cut()
        assert publisher.queue_sizes([queue]) == {queue: number}
        between.cut()


def test_a_deleted_queue_is_declared_again(rabbit_url: str, queue: str, publishing: Publishing) -> None:
    publisher = publishing(rabbit_url)
    send(publisher, queue)
    servers.delete_queues(rabbit_url, queue)
    send(publisher, queue)
    assert publisher.queue_sizes([queue]) == {queue: 1}


def test_an_alarm_is_named(rabbit_url: str, through_proxy: Through, queue: str, publishing: Publishing) -> None:
    """RabbitMQ says `connection.blocked` and then reads nothing more; here the proxy does the second part."""
    between, url = through_proxy(rabbit_url)
    publisher = publishing(url)
    send(publisher, queue)
    wire = publisher._wire
    assert wire is not None
    wire._link._on_blocked()  # type: ignore[attr-defined]
    between.swallowing = True
    assert "memory or disk alarm" in refused(publisher, queue)
    between.swallowing = False
    send(publisher, queue)


def test_parent_and_child_have_a_connection_each(publisher: Publisher, queue: str) -> None:
    """Both go on publishing after a fork; a shared connection would break one of them or mix up its answers."""
    send(publisher, queue)
    kept = publisher._wire
    child = os.fork()
    if child == 0:
        try:
            for _ in range(50):
                send(publisher, queue)
            publisher.close()
        finally:
            os._exit(0 if publisher._wire is None else 1)
    for _ in range(50):
        send(publisher, queue)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    send(publisher, queue)
    assert publisher._wire is kept, "the parent's connection was left alone"
    assert publisher.queue_sizes([queue]) == {queue: 102}


def test_a_redis_that_may_evict_is_warned_of(broker_url: str, publishing: Publishing) -> None:
    publisher = publishing(broker_url)
    assert publisher.policy_warning() is None
    client = redis.Redis.from_url(broker_url)
    before = client.config_get("maxmemory-policy")["maxmemory-policy"]
    try:
        client.config_set("maxmemory-policy", "allkeys-lru")
        said = publisher.policy_warning()
        assert said is not None
        assert "allkeys-lru" in said
        assert "noeviction" in said
    finally:
        client.config_set("maxmemory-policy", str(before))
        client.close()


def test_rabbitmq_never_evicts(rabbit_url: str, publishing: Publishing) -> None:
    publisher = publishing(rabbit_url)
    assert publisher.policy_warning() is None


def test_a_full_redis_is_said_in_one_sentence(broker_url: str, queue: str, publishing: Publishing) -> None:
    publisher = publishing(broker_url)
    client = redis.Redis.from_url(broker_url)
    try:
        client.config_set("maxmemory", "1")
        assert "memory" in refused(publisher, queue)
    finally:
        client.config_set("maxmemory", "0")
        client.close()
    send(publisher, queue)
