"""Whatever a job writes is shown as text: markup, ten thousand characters, overrides of direction, emoji; and NUL is refused."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import Engine, text

from ordering import attempt
from ordering.decide import Failed
from tests.board.conftest import Visit
from tests.board.site import Plan, Site

MARKUP = (
    """<img src=x onerror="window.canary=1"><script>window.canary=2</script></title></textarea></template>"><svg onload=window.canary=3>"""
)
TEXTS = {
    "markup": MARKUP,
    "braces": "{{ 7 * 7 }} {% raw %} ${window.canary=4} {n} {title}",
    "quotes": """'"` onmouseover=window.canary=5 x='""",
    "bidi": "\u202egnp.exe\u2066 right \u2069 \u200f left \u061c",
    "emoji": "🧹🪣👩‍👩‍👧‍👦🏳️‍🌈 \u0301\u0301\u0301\u0301\u0301",
    "long": "no-break-" * 22,
    "url": "javascript:window.canary=6",
}


@pytest.fixture(scope="module")
def hostile(site: Site, board_engine: Engine) -> tuple[Plan, Plan]:
    """A plan whose items have such titles, arguments, errors and outputs; and a stream of dead letters of the same kind."""
    long = "<i>" + "x" * 10_000
    plan = site.plan([f"{name} {each}" for name, each in TEXTS.items()], start=True, on_failure="continue")
    for each in TEXTS.values():
        claimed = plan.run()
        with board_engine.begin() as tx:
            attempt.write_output(tx, claimed.item_id, claimed.attempt, head=each + "\n" + long, tail=MARKUP, left_out=7)
            arguments = {"url": "http://127.0.0.1:1/", "headers": {each[:100]: each}, "data": long}
            tx.execute(text("update relevo.item set kwargs = :given, kind = :kind where id = :id"), {
                "given": json.dumps(arguments), "kind": MARKUP[:60], "id": claimed.item_id})  # fmt: skip
        plan.end(claimed, Failed("<b>Error</b>", each + long))
    with board_engine.begin() as tx:
        tx.execute(text("update relevo.plan set title = :title where id = :id"), {"title": MARKUP, "id": plan.id})
    stream = site.plan(list(TEXTS.values()), concurrency=4)
    return plan, stream


def unharmed(page: Page) -> None:
    """No script of a job's has run, nothing of it has become an element, and the page is whole."""
    assert page.evaluate("() => window.canary") is None
    assert page.locator("img, main script, [onerror], [onload], [onmouseover], a[href^='javascript:']").count() == 0
    expect(page.locator("#kbd-help")).to_have_count(1)
    expect(page.locator("footer, #say").last).to_be_attached()
    wide = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0, "nothing makes the page wider than the window"


@pytest.mark.parametrize("width", [1440, 390])
def test_a_plan_with_hostile_items(hostile: tuple[Plan, Plan], visit: Visit, width: int) -> None:
    plan, _ = hostile
    page = visit(plan.path, viewport={"width": width, "height": 900})
    unharmed(page)
    for name, each in TEXTS.items():
        expect(page.locator(".title", has_text=f"{name} ").first).to_contain_text(f"{name} {each}"[:100])


def test_the_pages_of_hostile_items(hostile: tuple[Plan, Plan], visit: Visit) -> None:
    plan, _ = hostile
    page = visit("/")
    unharmed(page)
    for item, each in zip(plan.ids, TEXTS.values(), strict=True):
        page.goto(f"/items/{item}")
        unharmed(page)
        assert each[:80] in page.locator("main").inner_text()
    for path in ("/trail", "/dead-letters", f"/plans/{plan.name}?text=%3Cimg", "/find?q=%3Cscript%3E", "/steps"):
        page.goto(path)
        unharmed(page)


def test_hostile_text_typed_into_the_board(site: Site, visit: Visit) -> None:
    plan = site.plan(1)
    page = visit(plan.path)
    page.goto(f"{plan.path}?text=" + "%22%3E%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
    unharmed(page)
    fields: dict[str, Any] = {"task": "http", "title": "with \0 inside", "args": "{}", "back": plan.path}
    origin = {"Origin": site.url, "Accept": "text/html"}
    answer = page.request.post(f"{plan.path}/items", form=fields, headers=origin, fail_on_status_code=False)
    assert answer.status == 422, answer.text()[:500]
    assert len(plan.order()) == 1


def test_the_hand_and_the_voice_with_hostile_titles(site: Site, visit: Visit) -> None:
    plan = site.plan([MARKUP, TEXTS["bidi"], "{count} {place}"])
    page = visit(plan.path)
    for item in plan.ids:
        page.locator(f"#i{item} .grip").focus()
        page.keyboard.press("Space")
        expect(page.locator("#say")).to_contain_text(plan.item(item).title[:20])
        page.keyboard.press("Escape")
    unharmed(page)
