"""Without script the board reads, decides and moves: every button is a form."""

from playwright.sync_api import Page, expect

from ordering.model import State
from tests.board.conftest import Visit
from tests.board.site import Site
from tests.patience import wait_until


def plain(visit: Visit, path: str) -> Page:
    return visit(path, live=False, java_script_enabled=False)


def test_moves_by_the_menu(site: Site, visit: Visit) -> None:
    plan = site.plan(4)
    a, b, c, d = plan.ids
    page = plain(visit, plan.path)
    for item, word, model in (
        (a, "Move down", [b, a, c, d]),
        (d, "Move up", [b, a, d, c]),
        (c, "Move to the top", [c, b, a, d]),
        (c, "Move to the end", [b, a, d, c]),
    ):
        page.locator(f"#a{item} > summary").click()
        page.locator(f"#a{item}").get_by_role("button", name=word).click()
        for place, each in enumerate(model):
            expect(page.locator("#line > .item").nth(place)).to_have_id(f"i{each}")
        assert plan.order() == model


def test_starts_decides_and_undoes(site: Site, visit: Visit) -> None:
    plan = site.plan(3)
    page = plain(visit, plan.path)
    page.locator("form[action$='/start'] button").click()
    expect(page.locator("#page-head .state")).to_have_attribute("data-s", "running")
    plan.end(plan.run())
    page.reload()
    page.locator("#decide").get_by_role("button", name="Skip").click()
    expect(page.locator("#decide")).to_have_count(0)
    assert plan.item(plan.ids[0]).state is State.SKIPPED
    page.locator(f"#a{plan.ids[1]} > summary").click()
    page.locator(f"#a{plan.ids[1]}").get_by_role("link", name="Cancel…").click()
    page.locator("dialog[open] button.btn-danger-solid, dialog[open] button.btn-primary").first.click()
    wait_until(lambda: plan.item(plan.ids[1]).state is State.CANCELLED, 30, "it is cancelled")
    page.get_by_role("button", name="Undo").first.click()
    wait_until(lambda: plan.item(plan.ids[1]).state is State.WAITING, 30, "it waits again")


def test_every_page_reads(site: Site, visit: Visit) -> None:
    plan = site.plan(2)
    page = plain(visit, "/")
    for path in ("/", plan.path, f"/items/{plan.ids[0]}", "/steps", "/dead-letters", "/facts", "/schedules", "/workers", "/trail", "/api"):
        answer = page.goto(path)
        assert answer is not None
        assert answer.status == 200, path
        expect(page.locator("h1")).to_have_count(1)
        expect(page.locator("#live")).to_be_hidden()
