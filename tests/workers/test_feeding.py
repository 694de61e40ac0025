"""What cannot be published holds up nothing else: one queue's fault is its own, and a broker that is away is waited for once."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from uuid import uuid4

import pytest
import redis
from amqp import Connection
from celery import Celery
from kombu.utils.url import parse_url

from ordering.model import Dispatch
from tests.patience import Stopwatch
from tests.workers.proxy import proxy
from workers import feeding
from workers.publish import Publisher


@pytest.fixture
def refused_queue(broker: str, queue: str) -> Iterator[str]:
    """A queue that the broker refuses to take a message for."""
    name = f"{queue}-refused"
    parts = parse_url(broker)
    if broker.startswith("amqp"):
        with Connection(f"{parts['hostname']}:{parts['port']}", parts["userid"], parts["password"]) as holder:
            holder.channel().queue_declare(name, exclusive=True)
            yield name
    else:
        client = redis.Redis.from_url(broker)
        client.set(name, "somebody else's")
        yield name
        client.close()


def dispatch(queue: str) -> Dispatch:
    return Dispatch(id=uuid4(), plan_id=1, queue=queue, task="a.task", argsrepr="", kwargsrepr="")


def test_a_queue_that_is_refused_holds_up_no_other(broker: str, queue: str, refused_queue: str, caplog: pytest.LogCaptureFixture) -> None:
    wrong = [dispatch(refused_queue) for _ in range(5)]
    right = [dispatch(queue) for _ in range(3)]
    with closing(Publisher(Celery("test", broker=broker))) as publisher:
        assert feeding.publish(publisher, [*wrong, *right]) == [each.id for each in right]
        assert publisher.queue_sizes([refused_queue, queue]) == {queue: 3}
    assert "is refused" in caplog.text
    assert [record.levelname for record in caplog.records if record.name.startswith("workers.")] == ["WARNING"]


def test_a_broker_that_is_away_is_waited_for_once(broker_url: str, queue: str) -> None:
    parts = parse_url(broker_url)
    with ExitStack() as stack:
        between = stack.enter_context(proxy((parts["hostname"], parts["port"])))
        through = broker_url.replace(f"{parts['hostname']}:{parts['port']}", f"127.0.0.1:{between.port}")
        publisher = stack.enter_context(closing(Publisher(Celery("test", broker=through))))
        assert len(feeding.publish(publisher, [dispatch(queue)])) == 1
        between.swallowing = True
        with Stopwatch() as watch:
            for _ in range(20):  # as many plans in one round
                assert feeding.publish(publisher, [dispatch(queue), dispatch(queue)]) == []
        assert watch.seconds < 10
