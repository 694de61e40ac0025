"""A service does not work on a schema of another release: one sentence, exit code 2, and nothing was touched."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from app import probe
from ordering import db, schema
from ordering.errors import NotMigrated, UnknownSchema
from tests.app.commands import environment
from tests.app.processes import ROOT, Program, program
from tests.ports import free_port

OLDER = "The database is not prepared for this version; run `relevo migrate`."
NEWER = "The database has a schema that is unknown here, so a newer Relevo has prepared it: install that one."
SERVICES = {
    "relevo worker": ["-m", "app.cli", "worker"],
    "worker": ["-P", "-m", "workers.worker"],
    "feeder": ["-P", "-m", "workers.feeder"],
    "http": ["-P", str(ROOT / "app/serving.py")],
    "exporter": ["-P", str(ROOT / "app/exporting.py")],
}


CATALOGUE = """
[schedules.early]
plan = "default"
cron = "0 4 * * *"
task = "shell"
args = { command = ["true"] }
"""


def version(engine: Engine, number: str) -> None:
    with engine.begin() as tx:
        tx.execute(text("update relevo.alembic_version set version_num = :number"), {"number": number})


@pytest.fixture
def services(database_url: str, broker_url: str, tmp_path: Path) -> Iterator[dict[str, Program]]:
    """All of them, started side by side when this is asked for."""
    (tmp_path / "relevo.toml").write_text(CATALOGUE)
    more = {"RELEVO_BROKER_URL": broker_url, "RELEVO_PORT": str(free_port()), "RELEVO_EXPORTER_PORT": str(free_port())}
    env = environment(database_url, tmp_path, **more)
    with ExitStack() as stack:
        yield {name: stack.enter_context(program(*words, env=env, cwd=tmp_path)) for name, words in SERVICES.items()}


@pytest.fixture(params=[(schema.VERSIONS[-2], OLDER), ("9999", NEWER)], ids=["older", "newer"])
def sentence(engine: Engine, request: pytest.FixtureRequest) -> str:
    number, said = request.param
    version(engine, number)
    return str(said)


def test_no_service_starts_on_it(sentence: str, services: dict[str, Program], engine: Engine) -> None:
    ends = {name: (each.ends(90), [line.removeprefix("relevo: ") for line in each.lines]) for name, each in services.items()}
    assert ends == {name: (2, [sentence]) for name in services}
    with engine.begin() as tx:
        assert tx.execute(text("select count(*) from relevo.plan")).scalar_one() == 0
        assert tx.execute(text("select count(*) from relevo.schedule")).scalar_one() == 0


def test_the_versions_are_those_of_the_migrations(engine: Engine) -> None:
    with engine.begin() as tx:
        assert tx.execute(schema.VERSION).scalar_one() == schema.VERSIONS[-1]
        schema.check(tx)
    assert len(schema.VERSIONS) == len(set(schema.VERSIONS)) >= 5


def test_what_is_missing_is_not_prepared_and_what_is_ready_is_so_for_readiness_too(
    database_url: str, engine: Engine, empty_database_url: str
) -> None:
    with pytest.raises(NotMigrated):
        schema.check_at(db.engine(empty_database_url, pooled=False))
    assert probe.database(empty_database_url) == OLDER
    assert probe.database(database_url) is None
    version(engine, "0001")
    assert probe.database(database_url) == OLDER
    version(engine, "9999")
    with pytest.raises(UnknownSchema):
        schema.check_at(engine)
    assert probe.database(database_url) is None  # whoever serves already goes on while a newer release comes in
