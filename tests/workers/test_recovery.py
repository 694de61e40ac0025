"""A worker consumes again by itself after whatever happens to its broker (J2), and keeps its own promises meanwhile."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from kombu.utils.url import parse_url

from tests import servers
from tests.conftest import Scale
from tests.patience import Stopwatch
from tests.workers.proxy import Proxy
from tests.workers.worker_process import Workers, until
from workers.publish import BrokerUnavailable

#: The case allows so much from the broker's return to the start of a new item.
BOUND = 25

WorkersOn = Callable[[str], Workers]
Through = Callable[[str], tuple[Proxy, str]]


def consumes_again(pool: Workers, dispatch_id: str) -> None:
    """A new message is taken and run within the bound, by the same process."""
    watch = Stopwatch()

    def sent() -> bool:
        try:
            pool.send(dispatch_id)
        except BrokerUnavailable:
            return False
        return True

    with watch:
        until(sent, BOUND, "the broker takes messages again")
        pool.ends(dispatch_id, BOUND - watch.seconds)
    assert pool.processes[0].poll() is None


@pytest.mark.timeout(180)
def test_a_broker_that_swallows_everything(broker: str, start_workers: WorkersOn, through_proxy: Through, scale: Scale) -> None:
    between, url = through_proxy(broker)
    pool = start_workers(url)
    pool.start(slots=2)
    pool.runs("before:0")
    between.swallowing = True
    # Long enough that the silence is noticed: twice the heartbeat on RabbitMQ.
    time.sleep(scale.seconds(60, least=13))
    until(lambda: "Connection to broker lost" in pool.log(), 30, "the silence is noticed")
    between.swallowing = False
    consumes_again(pool, "after:0")


def test_connections_cut_three_times(broker: str, start_workers: WorkersOn, through_proxy: Through) -> None:
    between, url = through_proxy(broker)
    pool = start_workers(url)
    pool.start(slots=2)
    pool.runs("begins:0")
    for number in range(3):
        between.cut()
        consumes_again(pool, f"after{number}:0")


def test_a_redis_restarted_three_times_while_bodies_run(start_workers: WorkersOn, through_proxy: Through, tmp_path: Path) -> None:
    with servers.valkey(tmp_path / "broker") as first:
        between, url = through_proxy(first)
        pool = start_workers(url)
        pool.start(slots=2)
        pool.send("body:5")
        until(lambda: pool.bodies("start"), 30, "the body runs")
    for number in range(3):
        with servers.valkey(tmp_path / "broker") as url:
            between.target = ("127.0.0.1", parse_url(url)["port"])
            time.sleep(0.5)
            if number == 2:
                consumes_again(pool, "after:0")
                pool.ends("body:5")
                assert len(pool.bodies("start")["body:5"]) == 1


def test_a_redis_that_is_a_replica_for_a_while(broker_url: str, start_workers: WorkersOn, scale: Scale) -> None:
    pool = start_workers(broker_url)
    pool.start(slots=2)
    pool.runs("begins:0")
    client = redis.Redis.from_url(broker_url)
    try:
        client.replicaof("127.0.0.1", "1")
        time.sleep(scale.seconds(20, least=4))
        client.replicaof("NO", "ONE")
        consumes_again(pool, "after:0")
    finally:
        client.replicaof("NO", "ONE")
        client.close()


def test_killed_clients_and_a_flush(broker_url: str, start_workers: WorkersOn) -> None:
    pool = start_workers(broker_url)
    pool.start(slots=2)
    pool.runs("begins:0")
    client = redis.Redis.from_url(broker_url)
    try:
        for number in range(3):
            for kind in ("normal", "pubsub"):
                client.client_kill_filter(_type=kind, skipme=True)
            consumes_again(pool, f"killed{number}:0")
        client.flushall()
        consumes_again(pool, "flushed:0")
    finally:
        client.close()


def test_what_is_taken_while_another_connection_is_lost_is_run(broker_url: str, start_workers: WorkersOn) -> None:
    """Closing what it has, kombu reads the answer to its last BRPOP, and Celery then forgets what has come with it."""
    pool = start_workers(broker_url)
    pool.start(slots=2)
    pool.runs("begins:0")
    client = redis.Redis.from_url(broker_url)
    try:
        sent = [f"taken{number}:0" for number in range(100)]
        for number, dispatch_id in enumerate(sent):
            if number % 20 == 0:
                client.client_kill_filter(_type="pubsub")
            pool.send(dispatch_id)
            time.sleep(0.05)
        for dispatch_id in sent:
            pool.ends(dispatch_id, BOUND)
        assert "Connection to broker lost" in pool.log()
        assert {dispatch_id: len(starts) for dispatch_id, starts in pool.bodies("start").items()} == dict.fromkeys(["begins:0", *sent], 1)
    finally:
        client.close()


def test_a_deleted_queue(rabbit_url: str, queue: str, start_workers: WorkersOn) -> None:
    pool = start_workers(rabbit_url)
    pool.start(slots=1)
    servers.delete_queues(rabbit_url, queue)
    consumes_again(pool, "idle:0")
    pool.send("body:3")
    until(lambda: "body:3" in pool.bodies("start"), 30, "the only slot is taken, nothing is consumed")
    servers.delete_queues(rabbit_url, queue)
    pool.ends("body:3")
    consumes_again(pool, "full:0")


def test_time_limits_hold_while_the_broker_is_away(start_workers: WorkersOn, through_proxy: Through, tmp_path: Path) -> None:
    with servers.valkey(tmp_path / "broker") as url:
        _, url = through_proxy(url)
        pool = start_workers(url)
        pool.start(slots=1)
        pool.send("body:30", "probe.limited")
        until(lambda: pool.bodies("start"), 30, "the body runs")
    until(lambda: "Connection to broker lost" in pool.log(), 30, "the broker is missed")
    until(lambda: "Hard time limit (3s) exceeded" in pool.log(), 40, "the body is stopped at its limit")


def test_a_worker_that_waits_for_its_broker_can_be_stopped(start_workers: WorkersOn, through_proxy: Through, tmp_path: Path) -> None:
    with servers.valkey(tmp_path / "broker") as url:
        _, url = through_proxy(url)
        pool = start_workers(url)
        process = pool.start(slots=1)
    until(lambda: "Trying again" in pool.log(), 30, "the worker waits for its broker")
    process.terminate()
    assert process.wait(30) == 0
