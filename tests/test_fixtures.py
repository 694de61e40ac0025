"""The suite's own promises: a database for each test, an empty broker, and skips that CI does not let pass."""

import subprocess
import sys
from pathlib import Path

import pytest
import redis
from sqlalchemy import Connection, Engine, text

ROOT = Path(__file__).parent.parent


def test_a_database_is_migrated(tx: Connection) -> None:
    assert tx.execute(text("select count(*) from information_schema.tables where table_schema = 'relevo'")).scalar_one() > 1


@pytest.mark.parametrize("turn", [1, 2])
def test_a_database_belongs_to_one_test(engine: Engine, turn: int) -> None:
    with engine.begin() as connection:
        connection.execute(text("create table public.mine (turn int)"))
        connection.execute(text("insert into public.mine values (:turn)"), {"turn": turn})


@pytest.mark.parametrize("turn", [1, 2])
def test_a_broker_is_empty(broker_url: str, turn: int) -> None:
    client = redis.Redis.from_url(broker_url, socket_timeout=30)
    assert client.dbsize() == 0
    client.set("turn", turn)
    client.close()


@pytest.mark.parametrize(("ci", "outcome"), [("true", (1, "1 failed, 1 passed, 1 error")), ("", (0, "1 passed, 2 skipped"))])
def test_a_skip_fails_in_ci_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ci: str, outcome: tuple[int, str]) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *\n")
    (tmp_path / "test_module.py").write_text("import pytest\npytest.skip('no module', allow_module_level=True)\n")
    (tmp_path / "test_one.py").write_text("import pytest\ndef test_it():\n    pytest.skip('no server')\ndef test_other():\n    pass\n")
    monkeypatch.setenv("CI", ci)
    options = ["--rootdir", str(tmp_path), "-c", "/dev/null", "-p", "no:cacheprovider", "-rA", "--continue-on-collection-errors"]
    done = subprocess.run([sys.executable, "-m", "pytest", *options, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=60)
    code, summary = outcome
    assert summary in done.stdout
    assert "no module" in done.stdout
    assert "no server" in done.stdout
    assert done.returncode == code
