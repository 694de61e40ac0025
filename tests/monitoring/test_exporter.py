"""The exporter: every metric by its name, the same from any number of exporters, answered in time whatever hangs, and nothing stale."""

import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit

import httpx
import pytest
from sqlalchemy import Connection, Engine, text

from monitoring import exporter, metrics
from monitoring import figures as reading
from monitoring.metrics import Kind
from ordering import finish, head, plans, reconcile, samples, session, tasks
from ordering.decide import Failed
from ordering.model import OnFailure
from ordering.tasks import TaskInfo
from tests.cases.proxy import before_database
from tests.monitoring.scraping import Figures, Scraped, exporting, figures, labels_of
from tests.ordering.acts import ACTOR, BROKEN, DONE, PROCESS, end, plan, put, run
from tests.patience import Stopwatch

FAST = 5.0  # seconds that a scrape may take at the most


@pytest.fixture
def scraped(database_url: str) -> Iterator[Scraped]:
    """An exporter on the database of this test."""
    with exporting(database_url) as made:
        yield made


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    with Stopwatch() as watch:
        yield
    assert watch.seconds < seconds


def some_work(tx: Connection) -> None:
    """Plans with something of each kind in them."""
    plan(tx, "line")
    plan(tx, "empty")
    plan(tx, "stream", concurrency=4)
    put(tx, 5)
    put(tx, 3, plan="stream")
    tasks.register(tx, [TaskInfo("noop", "relevo"), TaskInfo("other", "slow")])
    plans.start(tx, "line", actor=ACTOR)
    end(tx, DONE)
    end(tx, BROKEN)


def test_every_metric_is_there_and_known_plans_are_zero(engine: Engine, scraped: Scraped) -> None:
    with engine.begin() as tx:
        some_work(tx)
    found = scraped.figures()
    names = {name for name, _ in found}
    for metric in metrics.METRICS:
        expected = {Kind.GAUGE: [""], Kind.COUNTER: ["_total"], Kind.HISTOGRAM: ["_bucket", "_count", "_sum"]}[metric.kind]
        assert {f"{metric.name}{suffix}" for suffix in expected} <= names, metric.name
    assert found["relevo_depth", (("plan", "line"),)] == 3
    assert found["relevo_depth", (("plan", "stream"),)] == 3
    for name in ("relevo_depth", "relevo_oldest_age_seconds", "relevo_retry_ratio", "relevo_dead_letters", "relevo_blocked_seconds"):
        assert found[name, (("plan", "empty"),)] == 0
    assert found["relevo_retries_total", (("plan", "empty"),)] == 0
    assert found["relevo_wait_seconds_count", (("plan", "empty"),)] == 0
    assert found["relevo_items", (("plan", "empty"), ("state", "running"))] == 0
    assert found["relevo_attempts_total", (("outcome", "succeeded"), ("plan", "line"), ("task", "noop"))] == 1
    assert found["relevo_attempts_total", (("outcome", "interrupted"), ("plan", "line"), ("task", "noop"))] == 0
    assert found["relevo_run_seconds_count", (("plan", "line"), ("task", "noop"))] == 2
    assert found["relevo_wait_seconds_bucket", (("le", "+Inf"), ("plan", "line"))] == 2
    assert found["relevo_dead_letters", (("plan", "line"),)] == 1
    assert found["relevo_blocked_seconds", (("plan", "line"),)] > 0
    assert found["relevo_workers", ()] == 0
    assert {queue: found["relevo_broker_messages", (("queue", queue),)] for queue in ("relevo", "slow")} == {"relevo": 0, "slow": 0}
    assert [found["relevo_up", (("source", source),)] for source in ("postgres", "broker", "feeder")] == [1, 1, 1]


def test_what_is_exported_is_described_and_nothing_else(engine: Engine, scraped: Scraped) -> None:
    with engine.begin() as tx:
        some_work(tx)
    described = {f"{each.name}{'_total' if each.kind is Kind.COUNTER else ''}": each for each in metrics.METRICS}
    lines = scraped.text().splitlines()
    kinds = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
    assert kinds == {name: each.kind for name, each in described.items()}
    assert {name: line for line in lines if line.startswith("# HELP") for name in [line.split()[2]]} == {
        name: f"# HELP {name} {each.help}" for name, each in described.items()
    }
    for name, labels in scraped.figures():
        base = name if name in described else name.rpartition("_")[0]
        assert {label for label, _ in labels} - {"le"} == set(described[base].labels), name


def steady(found: Figures) -> Figures:
    """Without the ages, which go on between two scrapes."""
    return {(name, labels): value for (name, labels), value in found.items() if "_age_" not in name and "_blocked_" not in name}


def test_three_exporters_say_the_same_and_a_new_one_too(engine: Engine, database_url: str) -> None:
    with engine.begin() as tx:
        some_work(tx)
    with exporting(database_url) as one, exporting(database_url) as two, exporting(database_url) as three:
        first, *others = (steady(each.figures()) for each in (one, two, three))
        assert others == [first] * 2
    with engine.begin() as tx:
        for each in session.unlocked(tx):
            reconcile.close(tx, each.id, proved=True)
    with exporting(database_url) as restarted:
        assert steady(restarted.figures()) == first


LOCKS = text("select distinct locktype, mode from pg_locks where pid = pg_backend_pid() and locktype <> 'virtualxid'")


def test_a_scrape_holds_no_lock_that_any_verb_waits_for(engine: Engine, database_url: str) -> None:
    with engine.begin() as tx:
        some_work(tx)
    asking = reading.engine(database_url)
    with asking.connect() as scrape, engine.begin() as tx:
        assert reading.read(scrape).signals
        assert {(row.locktype, row.mode) for row in scrape.execute(LOCKS)} == {("relation", "AccessShareLock")}
        tx.execute(text("set local lock_timeout = '5s'"))
        put(tx, 1)
        assert head.feed(tx, plans.get(tx, "stream").id, serial=False)
    asking.dispose()


def test_a_broker_that_hangs_or_fails_is_down_and_the_rest_is_there(database_url: str) -> None:
    hangs, fails = threading.Event(), threading.Event()

    def broker(queues: Sequence[str]) -> Mapping[str, int]:
        if hangs.is_set():
            release.wait(120)
        if fails.is_set():
            raise OSError("The broker is away.")
        return dict.fromkeys(queues, 7)

    release = threading.Event()
    with exporting(database_url, broker) as scraped:
        assert scraped("relevo_broker_messages", queue="relevo") == 7
        for state in (fails, hangs):
            state.set()
            for _ in range(2):
                with at_most(FAST):
                    found = scraped.figures()
                assert found["relevo_up", (("source", "broker"),)] == 0
                assert found["relevo_up", (("source", "postgres"),)] == 1
                assert not [name for name, _ in found if name == "relevo_broker_messages"]
                assert ("relevo_workers", ()) in found
            state.clear()
        release.set()
        deadline = time.monotonic() + 60
        while scraped("relevo_up", source="broker") != 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert scraped("relevo_broker_messages", queue="relevo") == 7


def test_a_database_that_swallows_everything_is_down_and_leaves_no_stale_figure(engine: Engine, database_url: str) -> None:
    with engine.begin() as tx:
        some_work(tx)
    proxy, through = before_database(database_url)
    try:
        with exporting(through) as scraped:
            assert scraped("relevo_depth", plan="line") == 3
            proxy.swallowing = True
            for _ in range(2):
                with at_most(FAST):
                    found = scraped.figures()
                # The queue's name is known, and the broker answers.
                assert {name for name, _ in found} == {"relevo_up", "relevo_broker_messages"}
                assert [found["relevo_up", (("source", source),)] for source in ("postgres", "broker")] == [0, 1]
            proxy.swallowing = False
            proxy.cut()
            deadline = time.monotonic() + 60
            while scraped("relevo_depth", plan="line") != 3 and time.monotonic() < deadline:
                time.sleep(0.05)
            assert scraped("relevo_depth", plan="line") == 3
    finally:
        proxy.close()


def test_a_locked_table_is_waited_for_as_long_as_a_scrape_may_take(engine: Engine, scraped: Scraped) -> None:
    assert scraped("relevo_up", source="postgres") == 1
    with engine.begin() as tx:
        tx.execute(text("lock table relevo.item in access exclusive mode"))
        with at_most(FAST):
            assert scraped("relevo_up", source="postgres") == 0
    assert scraped("relevo_up", source="postgres") == 1


def test_scrapes_at_once_are_all_answered(engine: Engine, scraped: Scraped) -> None:
    with engine.begin() as tx:
        some_work(tx)
    with ThreadPoolExecutor(8) as pool:
        answers = [figures(said) for said in pool.map(lambda _: scraped.text(), range(16))]
    assert [each["relevo_up", (("source", "postgres"),)] for each in answers] == [1] * 16
    assert all(steady(each) == steady(answers[0]) for each in answers)


def test_a_feeder_that_takes_no_samples_is_down(engine: Engine, scraped: Scraped) -> None:
    with engine.begin() as tx:
        plan(tx)
    assert scraped("relevo_up", source="feeder") == 1  # the plan is new: its first sample is still to come
    with engine.begin() as tx:
        tx.execute(text("update relevo.plan set created_at = now() - interval '1 hour'"))
    assert scraped("relevo_up", source="feeder") == 0
    with engine.begin() as tx:
        assert samples.take(tx)
    assert scraped("relevo_up", source="feeder") == 1


def test_openmetrics_is_spoken_and_other_addresses_are_not_there(scraped: Scraped) -> None:
    said = scraped.text(Accept="application/openmetrics-text; version=1.0.0")
    assert said.endswith("# EOF\n")
    assert "# TYPE relevo_attempts counter" in said
    assert httpx.get(scraped.url, trust_env=False, timeout=30).text.startswith("Relevo's exporter")
    assert httpx.get(f"{scraped.url}/healthz", trust_env=False, timeout=30).text == "ok\n"
    assert httpx.get(f"{scraped.url}/else", trust_env=False, timeout=30).status_code == 404
    refused = httpx.post(f"{scraped.url}/metrics", trust_env=False, timeout=30)
    assert (refused.status_code, refused.text) == (501, "Unsupported method ('POST').\n")
    head = httpx.head(f"{scraped.url}/healthz", trust_env=False, timeout=30)
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "3", b"")


def test_a_client_that_leaves_harms_nobody(scraped: Scraped) -> None:
    parts = urlsplit(scraped.url)
    for said in (b"", b"GET /metrics HTTP/1.1\r\n", b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00\xff" * 50):
        with socket.create_connection((parts.hostname or "", parts.port or 0)) as client:
            client.sendall(said)
    assert scraped("relevo_up", source="postgres") == 1


def test_a_crowd_that_asks_for_nothing_is_bounded_and_shuts_nobody_out(scraped: Scraped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "CLIENTS", 5)
    address = urlsplit(scraped.url)
    with ExitStack() as crowd:
        idle = [crowd.enter_context(socket.create_connection((address.hostname, address.port), 20)) for _ in range(20)]
        for each in idle:
            each.settimeout(20)
        assert scraped.figures()
        assert [each.recv(1) for each in idle[:14]] == [b""] * 14, "the oldest make room"
        idle[-1].sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert idle[-1].recv(15) == b"HTTP/1.1 200 OK"


def test_a_scraper_s_own_connection_is_kept_before_a_crowd(scraped: Scraped, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter, "CLIENTS", 3)
    address = urlsplit(scraped.url)

    def connect(stack: ExitStack) -> socket.socket:
        return stack.enter_context(socket.create_connection((address.hostname, address.port), 20))

    def asks(client: socket.socket) -> None:
        client.sendall(b"HEAD /healthz HTTP/1.1\r\n\r\n")
        said = b""
        while not said.endswith(b"\r\n\r\n"):
            piece = client.recv(1000)
            assert piece, "it was closed"
            said += piece
        assert said.startswith(b"HTTP/1.1 200 OK\r\n")

    with ExitStack() as stack:
        scraper = connect(stack)
        for _ in range(5):
            asks(scraper)
            asks(connect(stack))  # once; it is served, and so it has been let in


def test_no_label_holds_an_id_a_text_or_a_workers_name(engine: Engine, scraped: Scraped) -> None:
    with engine.begin() as tx:
        some_work(tx)
        plan(tx, "failing", on_failure=OnFailure.CONTINUE)
        put(tx, 20, plan="failing")
        plans.start(tx, "failing", actor=ACTOR)
        finish.finish(tx, run(tx, "failing"), Failed("E", "unique text 0"))
    before = scraped.figures()
    with engine.begin() as tx:
        for number in range(1, 15):
            finish.finish(tx, run(tx, "failing"), Failed(f"E{number}", f"unique text {number}"))
    assert set(scraped.figures()) == set(before)
    values = labels_of(scraped.text())
    assert PROCESS.worker not in values
    assert not [value for value in values if "unique" in value]
