"""Connections do not cross forks: the child cannot use or end the parent's, and keeps nothing of it alive."""

import json
import os
import subprocess
import sys

import psutil
from sqlalchemy import Engine, text

from tests.workers.fork_probe import LOCK
from tests.workers.worker_process import ROOT, until


def test_child_neither_uses_nor_ends_nor_keeps_the_parents_connections(engine: Engine, database_url: str, broker: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.workers.fork_probe", database_url, broker],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    with parent:
        assert parent.stdout is not None
        line = parent.stdout.readline()
        assert line, "the program says what both sides see"
        told = json.loads(line)
        try:
            assert told["descriptor"] == os.devnull
            assert told["used"] == "OperationalError"
            assert told["before"] == told["after"], "the parent's session went on, whatever the child did"
            assert told["sizes"] == told["parent_sizes"] == {"relevo": 0}

            def taken() -> bool:
                with engine.begin() as tx:
                    return bool(tx.execute(text("select pg_try_advisory_xact_lock(:lock)"), {"lock": LOCK}).scalar_one())

            assert not taken()
            parent.kill()
            until(taken, 15, "the lock is free once the parent is dead")
            assert _lives(told["child"]), "although its child lives"
        finally:
            parent.kill()
            assert parent.stdin is not None
            parent.stdin.close()  # which the child waits for
    until(lambda: not _lives(told["child"]), 30, "the child has ended")


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
