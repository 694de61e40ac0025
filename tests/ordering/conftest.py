"""Most tests of the verbs see only their own transaction, so they share one database; `engine` still gives a test its own."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine

from ordering import db
from tests import servers


@pytest.fixture(scope="session")
def shared_engine(server_url: str, template: str) -> Iterator[Engine]:
    with servers.database(server_url, template) as url:
        # Unpooled, so that a session's advisory lock ends with the test that took it.
        made = db.engine(url, pooled=False)
        yield made
        made.dispose()


@pytest.fixture
def tx(shared_engine: Engine) -> Iterator[Connection]:
    """A connection with a transaction open, which is rolled back whatever the test did."""
    with shared_engine.connect() as connection:
        connection.begin()
        yield connection
