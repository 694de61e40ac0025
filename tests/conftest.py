"""Fixtures of the whole suite: real servers, a migrated database for each test, and one scale for rounds and durations."""

import os
import shutil
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Connection, Engine, make_url

from ordering import db
from tests import ramdisk, servers

IN_CI = os.environ.get("CI") == "true"
RAMDISK = pytest.StashKey[Path | None]()


class Scale:
    """How much of a test's full length this run does: 1 is all of it (`RELEVO_TEST_SCALE`)."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def rounds(self, full: int, least: int = 1) -> int:
        """How many rounds stand for `full` of them, `least` at the least."""
        return max(least, round(full * self.factor))

    def seconds(self, full: float, least: float = 0.0) -> float:
        """How many seconds stand for `full` of them, `least` at the least."""
        return max(least, full * self.factor)


SCALE = Scale(float(os.environ.get("RELEVO_TEST_SCALE", "0.05")))

settings.register_profile(
    "relevo",
    max_examples=SCALE.rounds(500, least=25),
    deadline=None,
    derandomize=IN_CI,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("relevo")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        config.option.basetemp = config.stash[RAMDISK] = ramdisk.folder()
    # A run that is told to end by TERM tears its fixtures down like one that is interrupted, and leaves no server behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A shell starts what it runs in the background with these ignored, and every program of a test would inherit that.
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    ours = config.stash.get(RAMDISK, None)
    if ours is not None:
        shutil.rmtree(ours, ignore_errors=True)  # what a test's process still writes there goes with it


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # There is one RabbitMQ and its queues have names: these tests run one after the other, in one process.
    for item in items:
        if "rabbit" in item.name or "rabbit_url" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.rabbit)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and CI must run everything: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if IN_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped, and CI must run everything: {_reason(report.longrepr)}"
    return report


def _reason(longrepr: object) -> object:
    return longrepr[2] if isinstance(longrepr, tuple) else longrepr


@pytest.fixture(scope="session")
def scale() -> Scale:
    return SCALE


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server where databases can be made: the given one, else one embedded server for the whole run."""
    with servers.postgres(tmp_path_factory.mktemp("server")) as url:
        yield url


@pytest.fixture(scope="session")
def template(server_url: str) -> Iterator[str]:
    """Name of a migrated database that nobody connects to, for copies."""
    with servers.database(server_url) as url:
        db.migrate(url)
        name = make_url(url).database
        assert name
        yield name


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """A database of this test alone, without Relevo's schema."""
    with servers.database(server_url) as url:
        yield url


@pytest.fixture
def database_url(server_url: str, template: str) -> Iterator[str]:
    """A migrated database of this test alone."""
    with servers.database(server_url, template) as url:
        yield url


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    made = db.engine(database_url)
    yield made
    servers.close(made)


@pytest.fixture
def tx(engine: Engine) -> Iterator[Connection]:
    """A connection with a transaction open; what the test does not commit is rolled back."""
    with engine.connect() as connection:
        connection.begin()
        yield connection


@pytest.fixture(scope="session")
def valkey_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One embedded Valkey for the whole run; tests take `broker_url`, which is empty."""
    with servers.valkey(tmp_path_factory.mktemp("broker")) as url:
        yield url


@pytest.fixture
def broker_url(valkey_url: str) -> str:
    """An empty Valkey."""
    servers.flush(valkey_url)
    return valkey_url


@pytest.fixture
def rabbit_url() -> Iterator[str]:
    """A RabbitMQ without the platform's own queue; skips where `RELEVO_TEST_RABBIT_URL` names none."""
    from ordering.model import DEFAULT_QUEUE

    url = servers.rabbit()
    servers.delete_queues(url, DEFAULT_QUEUE)
    yield url
    servers.delete_queues(url, DEFAULT_QUEUE)
