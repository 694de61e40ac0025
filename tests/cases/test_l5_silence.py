"""L5: silence does not look like health: whatever goes away, a scrape says so in time, an alert fires, readiness tells, and all clears."""

import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.cases.kit import Kit, wait_until
from tests.cases.processes import ROOT
from tests.cases.restartable import Restartable
from tests.conftest import Scale
from tests.monitoring.rig import Watched, watched
from tests.patience import Stopwatch
from tests.ports import free_port

pytestmark = pytest.mark.timeout(900)
FAST = 5.0  # seconds that a scrape may take


def test_each_silence_is_heard(own_kit: Kit, own_postgres: Restartable, own_valkey: Restartable, tmp_path: Path, scale: Scale) -> None:
    kit = own_kit
    lasting = scale.seconds(300, least=2)  # how long each is away once its alert fires
    with watched(kit, tmp_path) as platform:
        port = free_port()
        kit.start_program("web", [str(ROOT / "app/serving.py")], RELEVO_PORT=str(port))
        kit.up()
        kit.plan("line")
        kit.plan("stream", concurrency=2)
        kit.add("stream", "probe.give")
        kit.wait_done()
        readyz = f"http://127.0.0.1:{port}/readyz"

        def readiness() -> str:
            status: str = httpx.get(readyz, timeout=60, trust_env=False).json()["status"]
            return status

        wait_until(lambda: readiness() == "ready", 60, "everything is ready", pause=0.2)
        nothing_fires(platform)

        own_valkey.stop()
        platform.fires("RelevoSourceDown", source="broker")
        silent_for(lasting, platform, "broker", {"relevo_broker_messages"}, readiness, "not ready")
        own_valkey.start()
        platform.clears("RelevoSourceDown", source="broker")

        own_postgres.stop()
        platform.fires("RelevoSourceDown", source="postgres")
        silent_for(lasting, platform, "postgres", {"relevo_depth", "relevo_workers", "relevo_attempts_total"}, readiness, "not ready")
        own_postgres.start()
        platform.clears("RelevoSourceDown", source="postgres")

        worker = next(service for service in kit.services if service.name.startswith("worker"))
        worker.kill_all()
        platform.fires("RelevoNoWorker")
        wait_until(lambda: readiness() == "degraded", 30, "readiness says degraded", pause=0.2)
        kit.worker()
        platform.clears("RelevoNoWorker")

        platform.exporter.kill()
        platform.fires("RelevoExporterSilent")
        platform.start_exporter()
        platform.clears("RelevoExporterSilent")

        wait_until(lambda: readiness() == "ready", 60, "everything is ready again", pause=0.2)
        nothing_fires(platform)


def silent_for(seconds: float, platform: Watched, source: str, gone: set[str], readiness: Callable[[], str], status: str) -> None:
    """For so long each scrape is in time and says that the source is down, without one of its figures; and readiness says it too."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with Stopwatch() as watch:
            found = platform.scraped.figures()
        assert watch.seconds < FAST
        assert found["relevo_up", (("source", source),)] == 0
        assert not gone & {name for name, _ in found}
        assert readiness() == status
        time.sleep(0.5)


def nothing_fires(platform: Watched) -> None:
    wait_until(lambda: not platform.prometheus.firing(), 120, "nothing fires", pause=0.2)
