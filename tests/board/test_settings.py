"""The settings of a plan and the schedules are edited on the board: by hand, by the keyboard alone, and without script."""

from datetime import timedelta

from playwright.sync_api import Page, expect
from sqlalchemy import Engine

from ordering import plan_edit, plans, schedule
from tests.board.conftest import Visit
from tests.board.site import Plan, Site
from tests.servers import fresh_name


def settings(plan: Plan) -> dict[str, object]:
    with plan.engine.connect() as tx:
        return plan_edit.settings(tx, plan.id)


def opened(page: Page, by: str) -> None:
    """Reach the button that is called so with the Tab key alone, and press it."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.textContent.trim()") == by:
            break
    else:
        raise AssertionError(f"the Tab key does not reach {by}")
    page.keyboard.press("Enter")
    page.locator("dialog[open]").wait_for()


def test_a_plans_settings_by_the_keyboard_alone(site: Site, visit: Visit) -> None:
    plan = site.plan(2)
    page = visit(plan.path)
    opened(page, "Settings…")
    expect(page.locator("#ask-title")).to_be_focused()
    page.keyboard.type("Every night")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")  # halt, continue
    page.keyboard.press("Tab")
    page.keyboard.press("Space")  # autostart
    for _ in range(3):
        page.keyboard.press("Tab")
    expect(page.locator("#ask-keep")).to_be_focused()
    page.keyboard.type("soon")
    page.keyboard.press("Enter")
    expect(page.locator("dialog[open] [role=alert]")).to_contain_text("keep")
    expect(page.locator("#ask-keep")).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("2d")
    page.keyboard.press("Enter")
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator("h1")).to_have_text("Every night")
    expect(page.locator("#trail")).to_contain_text("2 d")
    found = settings(plan)
    assert (found["on_failure"], found["autostart"], found["keep"]) == ("continue", True, timedelta(days=2))


def test_settings_that_nobody_touched_stay_as_another_person_left_them(site: Site, visit: Visit) -> None:
    plan = site.plan(1, concurrency=4)
    page = visit(plan.path)
    page.get_by_role("link", name="Settings…").click()
    with plan.engine.begin() as tx:
        plan_edit.edit(tx, plans.lock(tx, plan.id), {"max_attempts": 9}, actor="somebody else")
    page.locator("#ask-rate").fill("100/m")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("dialog[open]")).to_have_count(0)
    found = settings(plan)
    assert found["max_attempts"] == 9
    assert found["rate"] is not None


def test_a_schedule_is_made_edited_paused_and_removed(site: Site, visit: Visit, board_engine: Engine) -> None:
    plan, name = site.plan(1), fresh_name("tick")
    page = visit("/schedules")
    page.locator("#new-schedule > summary").click()
    form = page.locator("#new-schedule form")
    form.locator("[name=name]").fill(name)
    form.locator("[name=plan]").fill(plan.name)
    form.locator("[name=cron]").fill("30 2 * * *")
    form.locator("[name=task]").fill("http")
    form.locator("[name=args]").fill('{"url": "http://127.0.0.1:1/"}')
    form.get_by_role("button", name="Make it").click()
    card = page.locator(f"#schedule-{name}")
    expect(card).to_contain_text("every day at 02:30")
    card.get_by_role("link", name="Edit…").click()
    dialog = page.locator("dialog[open]")
    dialog.locator("[name=cron]").fill("99 * * * *")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator("[role=alert]")).to_contain_text("cron")
    dialog.locator("[name=cron]").fill("0 9 * * 1-5")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(card).to_contain_text("on weekdays at 09:00")
    with board_engine.connect() as tx:
        assert schedule.get(tx, name).kwargs == {"url": "http://127.0.0.1:1/"}
    card.get_by_role("button", name="Pause").click()
    expect(card).to_contain_text("It does not tick until it is resumed.")
    card.get_by_role("button", name="Resume").click()
    expect(card.get_by_role("button", name="Pause")).to_be_visible()
    card.locator(".sheet > summary").click()
    card.get_by_label("Yes, remove").check()
    card.get_by_role("button", name="Remove").click()
    expect(card).to_have_count(0)


def test_settings_without_script(site: Site, visit: Visit) -> None:
    plan = site.plan(1)
    page = visit(plan.path, live=False, java_script_enabled=False)
    page.get_by_role("link", name="Settings…").click()
    page.locator("#ask-keep").fill("5d")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("dialog")).to_have_count(1)  # the list of keys, closed
    assert settings(plan)["keep"] == timedelta(days=5)
