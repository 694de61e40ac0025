"""The output of a command that runs: on the page while it is written, its end in view, and held by a button."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from sqlalchemy import Engine

from ordering.model import State
from tests.board import chromium
from tests.board.conftest import Visit
from tests.board.site import Site
from tests.cases.kit import Kit

COUNT = """
import pathlib, sys, time
print(*(f"line {n}" for n in range(200)), sep="\\n", flush=True)
go = pathlib.Path(sys.argv[1])
for step in ("one", "two"):
    while not go.with_suffix("." + step).exists():
        time.sleep(0.02)
    print("after", step, "<b>not bold</b>", flush=True)
while not go.exists():
    time.sleep(0.02)
"""


AT_ITS_END = """
() => { const o = document.querySelector('[data-output]'); return o.scrollHeight - o.scrollTop - o.clientHeight < 24; }
"""


@pytest.fixture
def services(board_engine: Engine, broker_url: str, tmp_path: Path) -> Iterator[Kit]:
    """A feeder and a worker on the board's database."""
    kit = Kit(board_engine.url.render_as_string(hide_password=False), broker_url, tmp_path)
    try:
        kit.up()
        yield kit
    finally:
        complaints = kit.close()
        sys.stdout.write(kit.logs()[-10_000:])  # shown where the test failed
    assert not complaints, "\n".join(complaints)


def test_the_output_of_what_runs_is_followed(site: Site, visit: Visit, services: Kit, tmp_path: Path) -> None:
    go = tmp_path / "go"
    command = {"task": "shell", "kwargs": {"command": [sys.executable, "-c", COUNT, str(go)]}}
    plan = site.plan(["Count"], start=True, item=command)
    (item,) = plan.ids
    page = visit(f"/items/{item}")
    output = page.locator("[data-output]").first
    expect(output).to_contain_text("line 199", timeout=60_000)
    page.wait_for_function("() => { const o = document.querySelector('[data-output]'); return o.scrollHeight > o.clientHeight; }")
    page.wait_for_function(AT_ITS_END)
    go.with_suffix(".one").touch()
    expect(output).to_contain_text("after one <b>not bold</b>")
    page.wait_for_function(AT_ITS_END)
    pause = page.locator("[data-output-pause]").first
    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    go.with_suffix(".two").touch()
    page.wait_for_timeout(2500)  # two looks of the page, which would have shown it
    expect(output).not_to_contain_text("after two")
    pause.click()
    expect(output).to_contain_text("after two")
    go.touch()
    services.wait_state(item, State.SUCCEEDED)
    expect(page.locator("#page-head .state")).to_have_attribute("data-s", "succeeded")
    chromium.settled(page)
