"""A platform that is watched: services as processes, their exporter, and a Prometheus with the shipped rules, sixty times as fast."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cases.kit import Kit, wait_until
from tests.cases.processes import Service
from tests.monitoring.prometheus import Prometheus, scraping
from tests.monitoring.scraping import Scraped
from tests.ports import free_port

RULES = Path(__file__).resolve().parents[2] / "monitoring/alerts.yml"
FACTOR = 60  # a minute of the rules is a second here
PATIENCE = 120.0  # seconds for an alert to fire or to clear, of which the rules take at most 35


def compressed(factor: int = FACTOR) -> dict[str, Any]:
    """The shipped rules with every time divided by `factor`: how long, over how long, and how many seconds are too many. No count."""
    rules: dict[str, Any] = yaml.safe_load(RULES.read_text())
    for rule in rules["groups"][0]["rules"]:
        expression = re.sub(r"(offset |\[)(\d+)m", lambda found: f"{found[1]}{int(found[2]) * 60_000 // factor}ms", rule["expr"])
        rule["expr"] = re.sub(r"(_seconds(?:\{[^}]*\})?\) > )(\d+)", lambda found: f"{found[1]}{int(found[2]) / factor:g}", expression)
        if "for" in rule:
            rule["for"] = f"{int(rule['for'].removesuffix('m')) * 60_000 // factor}ms"
    return rules


class Watched:
    """The rig: `kit` has plans, items and services."""

    def __init__(self, kit: Kit, prometheus: Prometheus, port: int) -> None:
        self.kit, self.prometheus, self._port = kit, prometheus, port
        self.scraped = Scraped(f"http://127.0.0.1:{port}")
        self.exporter = self.start_exporter()

    def start_exporter(self) -> Service:
        """Start the exporter, at its port."""
        self.exporter = self.kit.start_program(
            "exporter", [str(RULES.parents[1] / "app/exporting.py")], RELEVO_EXPORTER_PORT=str(self._port)
        )
        return self.exporter

    def fires(self, alert: str, **labels: str) -> None:
        """Wait until the alert fires with these labels."""
        self._wait(lambda: self._firing(alert, labels), f"{alert} fires for {labels}")

    def clears(self, alert: str, **labels: str) -> None:
        """Wait until the alert does not fire with these labels."""
        self._wait(lambda: not self._firing(alert, labels), f"{alert} clears for {labels}")

    def _firing(self, alert: str, labels: dict[str, str]) -> bool:
        return any(labels.items() <= each.items() for each in self.prometheus.firing().get(alert, []))

    def _wait(self, predicate: Callable[[], bool], what: str) -> None:
        try:
            wait_until(predicate, PATIENCE, what, pause=0.2)
        except AssertionError as error:
            raise AssertionError(f"{error}; firing: {self.prometheus.firing()}\n{self.scraped.text()[-3000:]}") from None


@contextmanager
def watched(kit: Kit, folder: Path) -> Iterator[Watched]:
    """The rig for the length of the block."""
    port = free_port()
    with scraping(folder / "prometheus", [f"127.0.0.1:{port}"], rules=compressed()) as prometheus:
        made = Watched(kit, prometheus, port)
        wait_until(lambda: prometheus.value('up{job="relevo"}') == 1, 60, "Prometheus scrapes the exporter")
        yield made
