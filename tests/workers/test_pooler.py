"""Behind a transaction pooler, where a session's lock would belong to somebody else, a worker refuses to start and says why."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import make_url

from tests.cases.proxy import before_database
from tests.ports import free_port
from tests.workers.worker_process import ROOT, until


@contextmanager
def pgbouncer(database_url: str, settings: str) -> Iterator[str]:
    """URL of a PgBouncer in front of the database, with `settings` in its configuration."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("the program pgbouncer is missing (Debian's package of that name)")
    proxy, url = before_database(database_url)  # over TCP, since it cannot enter the folder of an embedded server's socket
    parsed = make_url(url)
    port = free_port()
    folder = Path(tempfile.mkdtemp(prefix="relevo-pooler-"))
    folder.chmod(0o755)
    target = f"host=127.0.0.1 port={proxy.port} dbname={parsed.database} user={parsed.username}"
    if parsed.password:
        target += f" password={parsed.password}"
    (folder / "pgbouncer.ini").write_text(
        f"[databases]\npooled = {target}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        f"auth_type = any\n{settings}\n"
    )
    as_nobody = ["-u", "nobody"] if os.geteuid() == 0 else []  # it refuses to be root
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *as_nobody, str(folder / "pgbouncer.ini")], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        until(lambda: _answers(port) or process.poll() is not None, 30, "the pooler listens")
        assert process.poll() is None, (folder / "log").read_text()
        yield f"postgresql://somebody@127.0.0.1:{port}/pooled"
    finally:
        process.terminate()
        process.wait(60)
        proxy.close()
        shutil.rmtree(folder)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def pooled(database_url: str) -> Iterator[Callable[[str], str]]:
    with ExitStack() as stack:
        yield lambda settings: stack.enter_context(pgbouncer(database_url, settings))


def start(module: str, url: str, broker_url: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RELEVO_DATABASE_URL": url, "RELEVO_BROKER_URL": broker_url}
    return subprocess.run(
        [sys.executable, "-P", "-m", module], env=environment, cwd=folder, capture_output=True, text=True, timeout=90, check=False
    )


@pytest.mark.parametrize("settings", ["pool_mode = transaction\nignore_startup_parameters = options", "pool_mode = transaction"])
def test_transaction_pooler_is_refused(pooled: Callable[[str], str], broker_url: str, tmp_path: Path, settings: str) -> None:
    done = start("workers.worker", pooled(settings), broker_url, tmp_path)
    assert done.returncode in (2, 3)
    (sentence,) = done.stderr.splitlines()
    assert "pooler" in sentence
