"""axe-core on a page: what it finds that keeps people out. It comes from npm, pinned beside this file, and is used in tests only."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, ViewportSize

from tests.board.chromium import NARROW, WIDE

HERE = Path(__file__).parent
SCRIPT = HERE / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


@cache
def script() -> str:
    """The source of axe-core, installed first where it is not; skips where there is no npm (in CI a skip fails)."""
    with (HERE / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the suite runs in several processes
        if not SCRIPT.exists():
            if shutil.which("npm") is None:
                pytest.skip("axe-core is not installed and there is no npm: apt-get install npm")
            subprocess.run(["npm", "ci", "--silent"], cwd=HERE, check=True, timeout=120)
    return SCRIPT.read_text(encoding="utf-8")


#: Both sizes of the window and both sets of colours.
LOOKS: tuple[tuple[str, ViewportSize, Literal["light", "dark"], str], ...] = (
    ("wide and light", WIDE, "light", "{}"),
    ("narrow and dark", NARROW, "dark", "{}"),
    ("narrow and light", NARROW, "light", "{ runOnly: ['color-contrast'] }"),
    ("wide and dark", WIDE, "dark", "{ runOnly: ['color-contrast'] }"),
)


def found(page: Page, what: str) -> list[str]:
    """What is wrong on the page in any look, a line for each: `what` it is, its impact, its rule, and the first elements."""
    # Evaluated by the debugger, which the page's Content-Security-Policy does not concern.
    page.evaluate(script())
    wrong = []
    for look, size, scheme, options in LOOKS:
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        asked = f"{{ resultTypes: ['violations'], ...{options} }}"
        result: dict[str, Any] = page.evaluate(f"() => axe.run({{ exclude: ['.sprite'] }}, {asked})")
        wrong += [f"{what}, {look}: {_line(each)}" for each in result["violations"] if each["impact"] in SERIOUS]
    return wrong


def _line(violation: dict[str, Any]) -> str:
    places = "; ".join(f"{node['html'][:160]} ({node['failureSummary'].splitlines()[-1].strip()})" for node in violation["nodes"][:3])
    return f"{violation['impact']}: {violation['id']}: {violation['help']}: {places}"
