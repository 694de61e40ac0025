"""Both brokers for each test that takes `broker`, and workers of the probe application on it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from kombu.utils.url import parse_url

from tests import servers
from tests.workers.proxy import Proxy, proxy
from tests.workers.worker_process import Workers, workers


@pytest.fixture(params=["valkey", "rabbit"])
def broker(request: pytest.FixtureRequest) -> str:
    """URL of a Valkey, and in a second test of a RabbitMQ."""
    return str(request.getfixturevalue("broker_url" if request.param == "valkey" else "rabbit_url"))


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> Iterator[str]:
    """Name of a queue of this test alone; gone from RabbitMQ afterwards."""
    name = servers.fresh_name("probe")
    yield name
    url = request.node.funcargs.get("broker") or request.node.funcargs.get("rabbit_url")
    if url and url.startswith("amqp"):
        servers.delete_queues(url, name)


@pytest.fixture
def start_workers(queue: str, tmp_path: Path) -> Iterator[Callable[[str], Workers]]:
    """Called with the broker's URL: workers on the test's queue, none started yet."""
    with ExitStack() as stack:
        yield lambda url: stack.enter_context(workers(url, queue, tmp_path))


@pytest.fixture
def through_proxy() -> Iterator[Callable[[str], tuple[Proxy, str]]]:
    """Called with the broker's URL: a proxy in front of it, and the URL that leads through it."""
    with ExitStack() as stack:

        def made(url: str) -> tuple[Proxy, str]:
            host, port = parse_url(url)["hostname"], parse_url(url)["port"]
            between = stack.enter_context(proxy((host, port)))
            return between, url.replace(f"{host}:{port}", f"127.0.0.1:{between.port}")

        yield made
