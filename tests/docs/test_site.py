"""The site: every page is in its navigation, and it can be built with no link that leads nowhere."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from tests.docs.pages import DOCS, ROOT


def pages(nav: list[Any]) -> list[str]:
    """The files that a navigation names."""
    found = []
    for entry in nav:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            found += [value] if isinstance(value, str) else pages(value)
    return found


def test_every_page_is_in_the_navigation_once() -> None:
    named = pages(tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"])
    assert sorted(named) == sorted(str(file.relative_to(DOCS)) for file in DOCS.rglob("*.md"))


def test_the_site_is_built_and_asks_no_other_host(tmp_path: Path) -> None:
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    shutil.copytree(DOCS, tmp_path / "docs")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict", "--clean"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "build" / "site"
    assert (site / "es" / "tutorial-queue.html").exists()
    for file in site.rglob("*.html"):
        text = file.read_text(encoding="utf-8")
        for loads in ('<script src="http', '<link rel="stylesheet" href="http', '<img src="http', "fonts.googleapis"):
            assert loads not in text, file.name
