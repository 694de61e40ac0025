"""J2: after whatever happened to its broker a worker takes messages again, by itself; other pools than prefork are refused."""

import subprocess
import sys
import time
from collections.abc import Callable

import pytest
import redis

from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.cases.processes import ROOT
from tests.cases.proxy import Proxy
from tests.cases.restartable import Restartable
from tests.conftest import Scale

RECOVERY = 25.0  # seconds from the broker's return to the start of a new item


def runs_again(kit: Kit, plan: str, label: str) -> None:
    """A new item starts within the time of recovery, and nothing was restarted for it."""
    item = kit.add(plan, "probe.nap", 0)
    wait_until(lambda: kit.starts(item), RECOVERY, f"the new item starts after {label}\n{kit.logs()[-3000:]}")
    kit.wait_done()
    assert all(service.process.poll() is None for service in kit.services)


def restarted_three_times(server: Restartable, client: "redis.Redis", scale: Scale) -> None:
    for _ in range(3):
        server.restart()
        time.sleep(scale.seconds(1, least=0.1))


def killed(server: Restartable, client: "redis.Redis", scale: Scale) -> None:
    server.kill()
    time.sleep(scale.seconds(10, least=1))
    server.start()


def clients_killed(server: Restartable, client: "redis.Redis", scale: Scale) -> None:
    for kind in ("normal", "pubsub"):
        client.execute_command("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


def made_a_replica(server: Restartable, client: "redis.Redis", scale: Scale) -> None:
    client.replicaof("127.0.0.1", "1")  # of nobody: read-only, as after a failover to the wrong side
    time.sleep(scale.seconds(20, least=2))
    client.replicaof("NO", "ONE")


@pytest.mark.parametrize("harm", [restarted_three_times, killed, clients_killed, made_a_replica])
def test_valkey_comes_back(
    own_kit: Kit, own_valkey: Restartable, scale: Scale, harm: Callable[[Restartable, "redis.Redis", Scale], None]
) -> None:
    own_kit.up(slots=1)
    own_kit.plan("a")
    runs_again(own_kit, "a", "nothing")
    client = redis.Redis.from_url(own_valkey.url)
    try:
        harm(own_valkey, client, scale)
    finally:
        client.close()
    runs_again(own_kit, "a", harm.__name__)
    checks(own_kit)


@both_brokers
@pytest.mark.parametrize("hole", [True, False], ids=["black hole", "cut and refused"])
def test_network_to_the_broker_comes_back(kit: Kit, scale: Scale, hole: bool) -> None:
    """As a restart of a RabbitMQ looks from outside (its durable queue stays), and a network that swallows everything."""
    proxy, url = kit.broker_proxy()
    kit.up(slots=1, RELEVO_BROKER_URL=url)
    kit.plan("a")
    runs_again(kit, "a", "nothing")
    disturb(proxy, hole, scale.seconds(60, least=6))
    runs_again(kit, "a", "a black hole" if hole else "a refusal")
    checks(kit)


def disturb(proxy: Proxy, hole: bool, seconds: float) -> None:
    proxy.swallowing, proxy.refusing = hole, not hole
    if not hole:
        proxy.cut()
    time.sleep(seconds)
    proxy.swallowing = proxy.refusing = False


@pytest.mark.parametrize("words", [["-P", "threads"], ["--pool=solo"], ["--pool", "threads"]])
def test_another_pool_is_refused(kit: Kit, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "workers.worker", *words], cwd=ROOT, env=kit.environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "prefork" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
