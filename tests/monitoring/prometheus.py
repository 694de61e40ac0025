"""A real Prometheus for the length of a test, as a process of its own."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.ports import free_port

START_WITHIN = 120.0


class Prometheus:
    """Asked by its HTTP API."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._client = httpx.Client(base_url=url, timeout=30, trust_env=False)

    def close(self) -> None:
        self._client.close()

    def _get(self, path: str, **parameters: str) -> Any:
        answer = self._client.get(f"/api/v1/{path}", params=parameters)
        told = answer.json()
        assert told["status"] == "success", told
        return told["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples that an expression gives now. Fails on one that is wrong."""
        return list(self._get("query", query=expression)["result"])

    def value(self, expression: str) -> float | None:
        """The value of an expression that gives one sample; None where it gives none."""
        found = self.query(expression)
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def names(self) -> set[str]:
        """Every metric's name that was ever scraped."""
        return set(self._get("label/__name__/values"))

    def firing(self) -> dict[str, list[dict[str, str]]]:
        """The alerts that fire now, with the labels of each."""
        found: dict[str, list[dict[str, str]]] = {}
        for each in self._get("alerts")["alerts"]:
            if each["state"] == "firing":
                found.setdefault(each["labels"]["alertname"], []).append(each["labels"])
        return found

    def targets(self) -> list[dict[str, Any]]:
        """What it scrapes, and how that went last."""
        return list(self._get("targets")["activeTargets"])


@contextmanager
def scraping(folder: Path, targets: list[str], *, rules: Mapping[str, Any] | None = None, interval: str = "1s") -> Iterator[Prometheus]:
    """A Prometheus that scrapes `targets` as the job relevo and evaluates `rules`; skips where none is installed."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed (Debian's package prometheus)")
    folder.mkdir(parents=True, exist_ok=True)
    config: dict[str, Any] = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
        "scrape_configs": [{"job_name": "relevo", "static_configs": [{"targets": targets}]}],
    }
    if rules is not None:
        (folder / "alerts.yml").write_text(yaml.safe_dump(rules))
        config["rule_files"] = ["alerts.yml"]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True, env={"PATH": os.environ["PATH"]},
        )  # fmt: skip
    made = Prometheus(f"http://127.0.0.1:{port}")
    try:
        _until_ready(made, process, folder / "prometheus.log")
        yield made
    finally:
        made.close()
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(60)


def _until_ready(made: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_WITHIN
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if httpx.get(f"{made.url}/-/ready", timeout=2, trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"Prometheus is not ready: {log.read_text()[-3000:]}")
