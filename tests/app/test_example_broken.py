"""The example whose entry fails, on a platform of its own: it halts, repair-all mends it, and the rest runs."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.commands import ROOT, command, environment


@pytest.fixture
def env(tmp_path: Path) -> Iterator[dict[str, str]]:
    """No server is configured: run-all brings the platform up, and the end of the test stops it."""
    found = environment("", tmp_path, RELEVO_BROKER_URL="")
    yield found
    command("down", env=found, cwd=tmp_path)


@pytest.mark.timeout(240)
def test_it_halts_is_repaired_and_goes_on(env: dict[str, str], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "broken", tmp_path / "broken", ignore=shutil.ignore_patterns("build"))
    catalogue = ["--catalogue", "broken/relevo.toml"]
    halted = command("run-all", "--wait", *catalogue, env=env, cwd=tmp_path)
    assert halted.returncode == 1, halted
    assert b"halted at 2 'Count the stock' (failed)" in halted.stderr
    assert b"sheet.txt holds no figures" in halted.stdout
    repaired = command("repair-all", "--wait", *catalogue, env=env, cwd=tmp_path)
    assert repaired.returncode == 0, repaired
    assert b"stocktaking: done, 4 of 4." in repaired.stdout
    shown = command("show", "3", env=env, cwd=tmp_path)
    assert b"stock: 3 kinds" in shown.stdout
    healthy = command("repair-all", "--wait", *catalogue, env=env, cwd=tmp_path)
    assert (healthy.returncode, healthy.stdout) == (0, b"stocktaking: nothing is unresolved; nothing was changed.\n")
