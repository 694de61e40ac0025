"""Take every page of the board, light and dark, wide and on a telephone, into build/screenshots/.

Usage: python scripts/screenshots.py [NAME ...]     only the pages so named

Brings up a platform of its own with believable work on it (tests/board/stage.py) and throws it away. Needs Chromium.
"""

import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, Page  # noqa: E402 - the root of the checkout comes first

from app import web  # noqa: E402
from ordering import db  # noqa: E402
from tests import servers  # noqa: E402
from tests.board import chromium, hand, stage  # noqa: E402
from tests.board.site import serving_site  # noqa: E402
from tests.cases.kit import Kit  # noqa: E402

FOLDER = ROOT / "build" / "screenshots"
LOOKS: dict[str, dict[str, Any]] = {
    "": {"viewport": chromium.WIDE, "color_scheme": "light"},
    "-dark": {"viewport": chromium.WIDE, "color_scheme": "dark"},
    "-phone": {"viewport": chromium.NARROW, "color_scheme": "light", "device_scale_factor": 2},
    "-phone-dark": {"viewport": chromium.NARROW, "color_scheme": "dark", "device_scale_factor": 2},
}


def main(wanted: list[str]) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="relevo-screenshots-")))
        database = stack.enter_context(servers.postgres(home / "server"))
        db.migrate(database)
        kit = Kit(database, stack.enter_context(servers.valkey(home / "broker")), home)
        stack.callback(kit.close)
        catalogue = str(kit.catalogue(("tests.board.shop_tasks",), "shop.toml"))
        stage.prepare(kit)
        kit.feeder(RELEVO_CATALOGUE=catalogue)
        for name in ("a-1", "b-1"):
            kit.worker(4, name=name, RELEVO_CATALOGUE=catalogue)
        pages = stage.set_up(kit)
        engine = db.engine(database, settings=web.SESSION)
        stack.callback(engine.dispose)
        site = stack.enter_context(serving_site(engine, catalogue=ROOT / "relevo.toml"))
        browser = stack.enter_context(chromium.started())
        unknown = [name for name in wanted if name not in (*pages, *HANDS)]
        if unknown:
            print(f"There is no page {unknown[0]}; there are {', '.join([*pages, *HANDS])}.")
            return 2
        for look, options in LOOKS.items():
            take(browser, site.url, pages, wanted, look, options)
    return 0


def take(browser: Browser, url: str, pages: dict[str, str], wanted: list[str], look: str, options: dict[str, Any]) -> None:
    """Every wanted page in one look."""
    context = browser.new_context(base_url=url, locale="en-GB", timezone_id="UTC", reduced_motion="reduce", **options)
    page = context.new_page()
    for name, path in pages.items():
        if not wanted or name in wanted:
            page.goto(path)
            settle(page)
            shoot(page, name + look, whole=name != "api")
    for name, (path, act) in HANDS.items():
        if not wanted or name in wanted:
            page.goto(path)
            settle(page)
            act(page)
            shoot(page, name + look, whole=False)
    context.close()


def settle(page: Page) -> None:
    page.locator("#live[data-s=live]").wait_for(timeout=15_000)
    page.wait_for_timeout(300)  # fonts and pictures


def shoot(page: Page, name: str, *, whole: bool = True) -> None:
    path = FOLDER / f"{name}.png"
    page.screenshot(path=path, full_page=whole, animations="disabled")
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size // 1024} kB", flush=True)


def dragged(page: Page) -> None:
    """Three selected rows in the hand."""
    items = hand.shown(page)
    for item in items[4:7]:
        hand.row(page, item).locator(".pick").check()
    hand.row(page, items[4]).scroll_into_view_if_needed()
    hand.lift(page, items[4])
    _, y = hand.middle(hand.row(page, items[1]))
    page.mouse.move(hand.middle(hand.grip(page, items[4]))[0], y - 8, steps=3)


def menu(page: Page) -> None:
    """The menu of a row."""
    hand.row(page, hand.shown(page)[1]).locator("details.menu > summary").click()


def moving(page: Page) -> None:
    """The dialog that moves an item to a place."""
    hand.row(page, hand.shown(page)[2]).locator(".title").focus()
    page.keyboard.press("m")
    page.locator("dialog[open]").wait_for()


HANDS = {
    "drag": ("/plans/release", dragged),
    "menu": ("/plans/release", menu),
    "move-to": ("/plans/release", moving),
}

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # told to end, it stops what it started, as at Ctrl-C
    sys.exit(main(sys.argv[1:]))
