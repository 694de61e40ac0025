"""An hour in a minute: load, failure, stall and recovery make each alert fire and clear, in a real Prometheus beside a real platform."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from monitoring import metrics
from monitoring.metrics import Kind
from ordering import decision, plans
from ordering.dead import Which
from ordering.dead_decision import Verb, decide_all
from ordering.model import NewItem, State
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.restartable import Restartable
from tests.monitoring.rig import Watched, watched

DASHBOARDS = Path(__file__).resolve().parents[2] / "monitoring/grafana/dashboards"
pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def platform(own_kit: Kit, tmp_path: Path) -> Iterator[Watched]:
    """A watched platform with servers of its own, whose feeder and worker run."""
    with watched(own_kit, tmp_path) as made:
        own_kit.up()
        yield made


@contextmanager
def feeding(kit: Kit, plan: str, new: list[NewItem]) -> Iterator[None]:
    """Add such items each second for the length of the block."""
    over = threading.Event()

    def feed() -> None:
        while not over.wait(1.0):
            kit.add_many(plan, new, start=False)

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(60)
    assert not thread.is_alive()


def test_each_alert_fires_and_clears(platform: Watched, own_valkey: Restartable) -> None:
    kit = platform.kit
    kit.plan("mails", concurrency=4)
    kit.plan("nightly")
    kit.add("nightly", "probe.give")
    kit.add("mails", "probe.give")
    every_metric_arrives(platform)
    every_panel_shows_something(platform)
    load(platform)
    failure(platform)
    stall(platform)
    sources(platform, own_valkey)
    silence(platform)
    recovery(platform)


def every_metric_arrives(platform: Watched) -> None:
    suffixes = {Kind.GAUGE: [""], Kind.COUNTER: ["_total"], Kind.HISTOGRAM: ["_bucket", "_count", "_sum"]}
    names = {f"{each.name}{suffix}" for each in metrics.METRICS for suffix in suffixes[each.kind]}
    wait_until(lambda: names <= platform.prometheus.names(), 60, lambda: f"these arrive: {names - platform.prometheus.names()}")
    wait_until(lambda: platform.prometheus.value("relevo_workers") == 2, 60, "both processes are counted")


def every_panel_shows_something(platform: Watched) -> None:
    asked = [
        target["expr"].replace("$__rate_interval", "10s").replace("$plan", "mails")
        for path in sorted(DASHBOARDS.glob("*.json"))
        for panel in json.loads(path.read_text())["panels"]
        for target in panel["targets"]
    ]
    assert len(asked) > 30
    for expression in asked:
        wait_until(lambda expression=expression: platform.prometheus.query(expression), 60, f"{expression} gives something")  # type: ignore[misc]


def load(platform: Watched) -> None:
    """More comes in than a paused stream gets done."""
    kit = platform.kit
    with kit.tx() as tx:
        plans.pause(tx, "mails", actor=ACTOR)
    kit.add_many("mails", [NewItem("probe.give") for _ in range(150)], start=False)
    with feeding(kit, "mails", [NewItem("probe.give")] * 40):
        platform.fires("RelevoOldestAge", plan="mails")
        platform.fires("RelevoDepthGrowing", plan="mails")
    kit.start("mails")
    platform.clears("RelevoOldestAge", plan="mails")
    platform.clears("RelevoDepthGrowing", plan="mails")


def failure(platform: Watched) -> None:
    """What the tasks need does not answer: first they are tried again, then they wait for a decision."""
    kit = platform.kit
    with feeding(kit, "mails", [NewItem("probe.fail_first", [100, 0.5])] * 10):
        platform.fires("RelevoRetrySurge", plan="mails")
    platform.fires("RelevoDeadLetters", plan="mails")
    platform.clears("RelevoRetrySurge", plan="mails")

    def unsettled() -> int:
        counts = kit.view("mails").counts
        return sum(counts[state] for state in (State.WAITING, State.DISPATCHED, State.RUNNING))

    wait_until(lambda: not unsettled(), 120, "all of them have failed for good")
    assert decide_all(kit.engine, Verb.SKIP, Which(), actor=ACTOR).decided
    platform.clears("RelevoDeadLetters", plan="mails")
    # A serial plan stands still until somebody decides.
    item = kit.add("nightly", "probe.fail")
    platform.fires("RelevoBlocked", plan="nightly")
    platform.fires("RelevoDeadLetters", plan="nightly")
    with kit.tx() as tx:
        decision.skip(tx, item, actor=ACTOR)
    platform.clears("RelevoBlocked", plan="nightly")
    platform.clears("RelevoDeadLetters", plan="nightly")


def stall(platform: Watched) -> None:
    """Nobody works."""
    kit = platform.kit
    worker = next(service for service in kit.services if service.name.startswith("worker"))
    worker.kill_all()
    platform.fires("RelevoNoWorker")
    item = kit.add("nightly", "probe.give")
    platform.fires("RelevoHeadNotStarted", plan="nightly")
    kit.worker()
    kit.wait_state(item, State.SUCCEEDED, seconds=60)
    platform.clears("RelevoNoWorker")
    platform.clears("RelevoHeadNotStarted", plan="nightly")


def sources(platform: Watched, broker: Restartable) -> None:
    """The broker is away."""
    broker.stop()
    platform.fires("RelevoSourceDown", source="broker")
    assert platform.scraped("relevo_broker_messages", queue="relevo") is None
    assert platform.scraped("relevo_up", source="postgres") == 1
    broker.start()
    platform.clears("RelevoSourceDown", source="broker")


def silence(platform: Watched) -> None:
    """The exporter is away; what it counted is not."""
    before = platform.prometheus.value('sum(relevo_attempts_total{plan="mails"})')
    platform.exporter.kill()
    platform.fires("RelevoExporterSilent")
    platform.start_exporter()
    platform.clears("RelevoExporterSilent")
    wait_until(lambda: platform.prometheus.value('sum(relevo_attempts_total{plan="mails"})') == before, 60, f"{before} attempts, as before")


def recovery(platform: Watched) -> None:
    """Nothing fires in the end."""
    wait_until(lambda: not platform.prometheus.firing(), 120, lambda: f"nothing fires: {platform.prometheus.firing()}")
