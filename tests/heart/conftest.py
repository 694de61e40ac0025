"""The heart is tested with the kit of the cases: one platform for a module, a plan of its own for each test."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests import servers
from tests.cases.conftest import broker, kit
from tests.cases.kit import Kit

__all__ = ["broker", "kit"]

_numbers = count(1)


@pytest.fixture(scope="module")
def up(server_url: str, template: str, valkey_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kit]:
    """A feeder and a worker that know the tasks of this folder, for all tests of a module."""
    servers.flush(valkey_url)
    with servers.database(server_url, template) as url:
        made = Kit(url, valkey_url, Path(tmp_path_factory.mktemp("heart")))
        try:
            catalogue = made.catalogue(
                imports=("tests.cases.probe_tasks", "tests.heart.heart_tasks", "tests.heart.step_tasks"), name="heart.toml"
            )
            made.up(RELEVO_CATALOGUE=str(catalogue))
            yield made
        finally:
            complaints = made.close()
        assert not complaints, "\n".join(complaints)


@pytest.fixture
def line(up: Kit) -> str:
    """A serial plan of this test alone, with a run."""
    name = f"line-{next(_numbers)}"
    up.plan(name)
    return name
