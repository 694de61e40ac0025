"""The rules by promtool: they are well-formed, and each fires, does not fire, and clears."""

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "monitoring"


def promtool(*arguments: str) -> None:
    """Run promtool in the folder of the rules; skips where there is none."""
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian's package prometheus)")
    done = subprocess.run([found, *arguments], cwd=FOLDER, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_and_its_rules_are_well_formed() -> None:
    promtool("check", "config", "prometheus.yml")
    promtool("check", "rules", "--lint=all", "alerts.yml")


def test_each_alert_fires_and_clears_and_leaves_what_is_well_alone() -> None:
    promtool("test", "rules", "alerts_test.yml")


def test_each_alert_has_a_test() -> None:
    rules, tested = ((FOLDER / name).read_text() for name in ("alerts.yml", "alerts_test.yml"))
    names = [line.split()[-1] for line in rules.splitlines() if "- alert:" in line]
    assert names
    for name in names:
        assert tested.count(f"alertname: {name}") >= 2, name
