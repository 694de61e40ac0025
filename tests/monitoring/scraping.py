"""An exporter in this process, scraped as Prometheus does it."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from monitoring import exporter
from monitoring import figures as reading
from tests import servers

Broker = Callable[[Sequence[str]], Mapping[str, int]]
Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def silent(queues: Sequence[str]) -> Mapping[str, int]:
    """A broker that holds nothing."""
    return dict.fromkeys(queues, 0)


def figures(text: str) -> Figures:
    """Every sample by its name and labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


class Scraped:
    """What one exporter says."""

    def __init__(self, url: str) -> None:
        self.url = url

    def text(self, **headers: str) -> str:
        """One scrape, as it came."""
        response = httpx.get(f"{self.url}/metrics", headers=headers, timeout=30, trust_env=False)
        assert response.status_code == 200, response.text
        return response.text

    def figures(self) -> Figures:
        """One scrape."""
        return figures(self.text())

    def __call__(self, name: str, **labels: str) -> float | None:
        """One figure of one scrape; None where it is not there."""
        return self.figures().get((name, tuple(sorted(labels.items()))))


@contextmanager
def exporting(database_url: str, broker: Broker = silent) -> Iterator[Scraped]:
    """An exporter for the length of the block."""
    listening = servers.listening()
    engine = reading.engine(database_url)
    server = exporter.Exporter(listening, exporter.registry(engine, broker))
    server.daemon_threads = False  # so that the end of the block waits for each scrape
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Scraped(f"http://127.0.0.1:{listening.getsockname()[1]}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)
        servers.close(engine)


def labels_of(text: str) -> set[str]:
    """Every value of a label."""
    found: Any = (value for family in text_string_to_metric_families(text) for sample in family.samples for value in sample.labels.values())
    return set(found)
