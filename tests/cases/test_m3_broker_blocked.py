"""M3: a broker, or a Postgres, takes connections and says nothing: every page and call answers within 3 s, and recovers by itself."""

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial

import httpx
import pytest

from app import probe, web
from ordering import db
from ordering.model import State
from tests import servers
from tests.app.pages import HTML
from tests.app.web import ok, problem, serving
from tests.cases import commandline
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.cases.proxy import Proxy
from tests.patience import Stopwatch

BOUND = 3.0  # seconds, and a little for a machine that does other things too
SLACK = 4.0
Door = tuple[httpx.Client, Proxy, Proxy, str]
PAGES = ("/", "/plans/a", "/trail", "/dead-letters")


@pytest.fixture
def door(kit: Kit) -> Iterator[Door]:
    """A client of a server whose Postgres and broker are each behind a line, the two lines, and the URL through the second."""
    database, database_url = kit.database_proxy()
    broker, broker_url = kit.broker_proxy()
    engine = db.engine(database_url, settings=web.SESSION)
    looks: dict[str, Callable[[], str | None]] = {
        "database": partial(probe.database, database_url),
        "broker": partial(probe.broker, broker_url),
    }
    with serving(engine, looks=looks) as client:
        yield client, database, broker, broker_url
    servers.close(engine)


def warmed(client: httpx.Client) -> None:
    """Each page once: a server's first one compiles its templates, which is no matter of an outage."""
    for path in PAGES:
        assert client.get(path, headers=HTML).status_code == 200, path


def asked(client: httpx.Client, method: str, path: str, **what: object) -> httpx.Response:
    with Stopwatch() as watch:
        answer = client.request(method, path, **what)  # type: ignore[arg-type]
    assert watch.seconds < BOUND + SLACK, f"{method} {path} took {watch.seconds:.1f} s"
    return answer


@both_brokers
def test_a_broker_that_says_nothing(kit: Kit, door: Door) -> None:
    client, _, broker, broker_url = door
    kit.plan("a")
    warmed(client)
    broker.swallowing = True
    added = ok(asked(client, "POST", "/api/plans/a/items", json={"task": "http", "args": {"url": "http://x"}}), 201)["id"]
    ok(asked(client, "POST", f"/api/items/{added}/move", json={"last": True}))
    ok(asked(client, "POST", "/api/plans/a/start"))
    for path in PAGES:
        assert asked(client, "GET", path, headers=HTML).status_code == 200, path
    ready = asked(client, "GET", "/readyz")
    assert (ready.status_code, ready.json()["services"]) == (503, {"database": "ok", "broker": "does not answer"})
    ok(asked(client, "GET", "/healthz"))
    said, _ = commandline.call(kit, "status", code=3, environment={"RELEVO_BROKER_URL": broker_url})
    assert "broker" in said.splitlines()[-1].lower()
    broker.swallowing = False
    broker.cut()
    wait_until(lambda: client.get("/readyz").status_code == 200, 30, "it is ready again")


@pytest.fixture
def alarm(rabbit_url: str) -> Iterator[Callable[[bool], None]]:
    """Puts the tests' RabbitMQ into memory alarm, in which it reads nothing more from whoever publishes, and out of it."""

    control = os.environ.get("RELEVO_TEST_RABBITMQCTL")
    if control is None:
        pytest.skip("RELEVO_TEST_RABBITMQCTL is not set: nothing to give the RabbitMQ orders with")

    def to(on: bool) -> None:
        subprocess.run([control, "-q", "set_vm_memory_high_watermark", "0" if on else "0.4"], check=True, capture_output=True, timeout=60)

    try:
        yield to
    finally:
        to(False)


@pytest.mark.parametrize("broker", ["rabbit"], indirect=True)
def test_a_broker_in_memory_alarm(kit: Kit, door: Door, alarm: Callable[[bool], None]) -> None:
    client, *_ = door
    kit.plan("a")
    warmed(client)
    kit.up()
    before = kit.add("a", "probe.nap", 0)
    kit.wait_state(before, State.SUCCEEDED)
    alarm(True)
    body = {"task": "probe.nap", "args": [0]}
    added = [ok(asked(client, "POST", "/api/plans/a/items", json=body), 201)["id"] for _ in range(3)]
    ok(asked(client, "POST", f"/api/items/{added[2]}/move", json={"first": True}))
    ok(asked(client, "POST", "/api/plans/a/start"))
    for path in PAGES:
        assert asked(client, "GET", path, headers=HTML).status_code == 200, path
    ok(asked(client, "GET", "/healthz"))
    asked(client, "GET", "/readyz")
    said, _ = commandline.call(kit, "plan", "show", "a")
    assert str(added[0]) in said
    assert not any(kit.starts(item) for item in added)
    alarm(False)
    for item in added:
        kit.wait_state(item, State.SUCCEEDED, seconds=30)
        assert len(kit.starts(item)) == 1
    checks(kit, in_order=False)


def test_a_postgres_that_says_nothing(kit: Kit, door: Door) -> None:
    client, database, *_ = door
    kit.plan("a")
    warmed(client)
    database.swallowing = True
    for path in PAGES:
        answer = asked(client, "GET", path, headers=HTML)
        assert answer.status_code == 503, path
        assert 'role="alert"' in answer.text
        assert answer.headers["retry-after"]
    for method, path in (("GET", "/api/plans"), ("POST", "/api/plans/a/start"), ("GET", "/api/events"), ("POST", "/api/events/1/undo")):
        problem(asked(client, method, path, json={}), 503, "database-unreachable")
    ready = asked(client, "GET", "/readyz")
    assert ready.json()["services"]["database"] == "does not answer"
    ok(asked(client, "GET", "/healthz"))
    database.swallowing = False
    database.cut()
    wait_until(lambda: client.get("/readyz").status_code == 200, 30, "it is ready again")
    for path in PAGES:
        assert client.get(path, headers=HTML).status_code == 200, path
