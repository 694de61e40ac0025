"""The kit of a case, on Valkey or on RabbitMQ; what the case started is gone afterwards, or the case has failed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.kit import Kit
from tests.cases.restartable import Restartable, broker_server, database_server

HERE = Path(__file__).parent
LIMIT = 180.0  # seconds: a case starts several services, on a machine that may have other work


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    limit = max(LIMIT, float(config.getini("timeout") or 0))
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.timeout(limit))


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> str:
    """URL of an empty broker: Valkey, or what a test marked with `both_brokers` asks for."""
    return str(request.getfixturevalue("rabbit_url" if getattr(request, "param", "valkey") == "rabbit" else "broker_url"))


@pytest.fixture
def kit(database_url: str, broker: str, tmp_path: Path) -> Iterator[Kit]:
    """The kit on the suite's own servers."""
    made = Kit(database_url, broker, tmp_path)
    complaints: list[str] = []
    try:
        yield made
    finally:
        complaints = made.close()
        sys.stdout.write(made.logs()[-10_000:])  # shown where the case failed
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def own_postgres(tmp_path: Path) -> Iterator[Restartable]:
    """A migrated PostgreSQL of this test alone, which it may stop, kill and start."""
    with database_server(tmp_path / "postgres") as server:
        yield server


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[Restartable]:
    """A Valkey of this test alone, which it may stop, kill and start."""
    with broker_server(tmp_path / "valkey") as server:
        yield server


@pytest.fixture
def own_kit(own_postgres: Restartable, own_valkey: Restartable, tmp_path: Path) -> Iterator[Kit]:
    """The kit on servers of this test alone (`own_postgres`, `own_valkey`); both must run when the test ends."""
    made = Kit(own_postgres.url, own_valkey.url, tmp_path)
    complaints: list[str] = []
    try:
        yield made
    finally:
        own_postgres.start()
        own_valkey.start()
        complaints = made.close()
        sys.stdout.write(made.logs()[-10_000:])  # shown where the case failed
    assert not complaints, "\n".join(complaints)
