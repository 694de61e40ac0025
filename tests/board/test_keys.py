"""Single keys: each does what the list of keys says, none where somebody types, and all can be switched off."""

from playwright.sync_api import expect

from tests.board import chromium, hand
from tests.board.conftest import Visit
from tests.board.site import Site


def test_keys_of_rows(site: Site, visit: Visit) -> None:
    plan = site.plan(4)
    page = visit(plan.path)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(hand.row(page, plan.ids[1]).locator(".title")).to_be_focused()
    page.keyboard.press("x")
    expect(hand.row(page, plan.ids[1]).locator(".pick")).to_be_checked()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Shift+X")
    expect(page.locator(".pick:checked")).to_have_count(3)
    page.keyboard.press("k")
    page.keyboard.press("m")
    expect(page.locator("dialog[open]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("p")
    expect(page.locator("dialog[open]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/items/{plan.ids[2]}")


def test_keys_of_the_page(site: Site, visit: Visit) -> None:
    plan = site.plan(2)
    page = visit(plan.path)
    page.keyboard.press("?")
    expect(page.locator("#dlg-keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("jx?")
    assert page.evaluate("() => document.activeElement.value") == "jx?"
    page.keyboard.press("Tab")
    page.locator("#main").focus()
    for second, path in (("d", "/dead-letters"), ("t", "/trail"), ("w", "/workers"), ("p", "/")):
        page.keyboard.press("g")
        page.keyboard.press(second)
        expect(page).to_have_url(f"{site.url}{path}")
        chromium.settled(page)  # its script listens to keys


def test_keys_can_be_switched_off(site: Site, visit: Visit) -> None:
    plan = site.plan(2)
    page = visit(plan.path)
    page.keyboard.press("?")
    page.locator("[data-keys-on]").uncheck()
    page.keyboard.press("Escape")
    for _ in range(2):
        page.keyboard.press("j")
        page.keyboard.press("x")
        expect(page.locator(".pick:checked")).to_have_count(0)
        page.reload()
        page.locator("#live[data-s=live]").wait_for()
    hand.carry(page, plan.ids[0], 1)
    expect(page.locator("[data-sortable] > .item").last).to_have_id(f"i{plan.ids[0]}")
