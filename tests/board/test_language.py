"""Spanish: by the browser's wish, by the switch, and in what the script says."""

from playwright.sync_api import expect

from ordering import items
from tests.board import hand
from tests.board.conftest import Visit
from tests.board.site import Site
from tests.ordering.acts import TOMORROW


def test_spanish_by_the_browsers_wish(site: Site, visit: Visit) -> None:
    plan = site.plan(3)
    page = visit(plan.path, locale="es-ES")
    expect(page.locator("html")).to_have_attribute("lang", "es")
    expect(page.locator("#live")).to_contain_text("En vivo")
    plan.do(items.postpone, plan.ids[2], TOMORROW)
    expect(page.locator("#counts")).to_have_text("2 en espera · 1 pospuesta")
    hand.grip(page, plan.ids[0]).focus()
    page.keyboard.press("Space")
    expect(page.locator("#say")).to_contain_text("1 de 2")
    page.keyboard.press("Escape")
    expect(page.locator("#say")).to_contain_text("Item 1")


def test_the_switch_prevails(site: Site, visit: Visit) -> None:
    plan = site.plan(2)
    page = visit(plan.path)
    page.locator("#who-menu > summary").click()
    page.get_by_role("button", name="Español").click()
    expect(page.locator("html")).to_have_attribute("lang", "es")
    expect(page.locator("#live")).to_contain_text("En vivo")
    page.goto("/")
    expect(page.locator("html")).to_have_attribute("lang", "es")
    page.locator("#who-menu > summary").click()
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
