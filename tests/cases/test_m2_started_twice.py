"""M2: stale records, recycled pids, and everything started twice."""

import json
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.cases.project import Project, project

pytestmark = pytest.mark.timeout(240)

CATALOGUE = """
[[plans.nightly.items]]
key = "slow"
title = "slow"
task = "shell"
args = { command = ["sh", "-c", "echo slow >>ran; sleep 1"] }
order = 1

[[plans.nightly.items]]
key = "quick"
title = "quick"
task = "shell"
args = { command = ["sh", "-c", "echo quick >>ran"] }
order = 2
"""


def ran(somebody: Project) -> list[str]:
    return (somebody.folder / "ran").read_text().split()


def services(somebody: Project) -> dict[str, int]:
    return {service["name"]: service["pid"] for service in somebody.record()["services"]}


def test_run_all_after_a_crash_twice_at_once_and_repair_all(tmp_path: Path) -> None:
    with project(tmp_path / "theirs", CATALOGUE) as theirs:
        # Twice in parallel where nothing is up: one platform, nothing added twice.
        first, second = theirs.start("run-all", "--wait"), theirs.start("run-all", "--wait")
        assert theirs.ends(first)[0] == theirs.ends(second)[0] == 0
        assert len([process for process in theirs.living() if "workers.feeder" in process.cmdline()]) == 1
        assert ran(theirs) == ["slow", "quick"]
        before = services(theirs)

        # Repairing what is well changes nothing.
        shown = theirs.items()
        assert len(shown) == 2
        theirs.relevo("repair-all", "--wait")
        assert theirs.items() == shown
        assert services(theirs) == before

        # Killed whole, with a record that names somebody else's process: found out, and that one is left alone.
        theirs.kill_everything()
        with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
            try:
                record = theirs.record()
                record["pid"] = stranger.pid
                for service in record["services"]:
                    service["pid"] = stranger.pid
                (theirs.home / "platform.json").write_text(json.dumps(record))
                for lock in theirs.home.glob("postgres/cluster/postmaster.pid"):
                    lock.write_text("\n".join([str(stranger.pid), *lock.read_text().split("\n")[1:]]))
                theirs.relevo("run-all", "--wait")
                assert ran(theirs) == ["slow", "quick"] * 2
                assert set(services(theirs).values()).isdisjoint(before.values())
                theirs.relevo("down")
                assert psutil.Process(stranger.pid).status() != psutil.STATUS_ZOMBIE
            finally:
                stranger.kill()
