"""Everybody can use it: axe-core finds nothing serious on any page, light and dark, wide and narrow, with what opens open."""

import pytest
from sqlalchemy import Engine

from ordering import items
from tests.board import axe, hand
from tests.board.conftest import Visit
from tests.board.site import Plan, Site
from tests.ordering.acts import TOMORROW

PAGES = ("/", "/dead-letters", "/steps", "/facts", "/schedules", "/workers", "/trail", "/api", "/find?q=item", "/nowhere")


@pytest.fixture(scope="module")
def full(site: Site, board_engine: Engine) -> Plan:
    """A halted plan with everything that a line can hold, and a stream with dead letters."""
    plan = site.plan(8, start=True, on_failure="continue")
    plan.end(plan.run())
    plan.do(items.postpone, plan.ids[7], TOMORROW)
    plan.do(items.cancel, plan.ids[6])
    halted = site.plan(3, start=True)
    halted.end(halted.run())
    plan.run()
    return plan


def test_nothing_serious_on_a_plans_page(full: Plan, visit: Visit) -> None:
    page = visit(full.path)
    for fold in page.locator("details.fold:not([open]) > summary").all():
        fold.click()
    wrong = axe.found(page, "the plan")
    hand.row(page, full.ids[3]).locator(".pick").check()
    page.locator(f"#a{full.ids[3]} > summary").click()
    wrong += axe.found(page, "a selection and a menu")
    page.keyboard.press("Escape")
    page.keyboard.press("m")
    page.locator("dialog[open]").wait_for()
    wrong += axe.found(page, "a dialog")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Settings…").click()
    page.locator("#ask-keep").wait_for()
    wrong += axe.found(page, "the settings")
    assert not wrong, "\n".join(wrong)


@pytest.mark.timeout(600)  # a dozen pages, each looked at in every look
def test_nothing_serious_on_any_other_page(full: Plan, visit: Visit) -> None:
    page = visit("/")
    wrong = []
    for path in (*PAGES, f"/items/{full.ids[0]}", f"/items/{full.ids[3]}"):
        page.goto(path)
        wrong += axe.found(page, path)
    assert not wrong, "\n".join(wrong)
