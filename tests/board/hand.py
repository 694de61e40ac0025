"""What hands do on a plan's page: drag with the mouse or a finger, carry with the keyboard, and read what the line shows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Locator, Page, Response, TimeoutError

STEPS = 2  # of a mouse on its way
REFUSAL = "#notices [role=alert]:not([data-keep])"


def row(page: Page, item: int) -> Locator:
    """The row of the item in the line."""
    return page.locator(f"[data-sortable] > #i{item}")


def grip(page: Page, item: int) -> Locator:
    return row(page, item).locator(".grip")


def shown(page: Page) -> list[int]:
    """The ids of the rows in the line, as they stand on the page."""
    found: list[str] = page.eval_on_selector_all("[data-sortable] > .item", "rows => rows.map(row => row.id)")
    return [int(each.removeprefix("i")) for each in found]


#: Whether the line shows these items, in their order.
SHOWS = """
ids => {
    const rows = [...document.querySelectorAll('[data-sortable] > .item')].map(row => Number(row.id.slice(1)));
    return rows.length === ids.length && rows.every((id, place) => id === ids[place]);
}
"""


def shows(page: Page, ids: list[int]) -> None:
    """Wait until the line shows these items, in their order."""
    try:
        page.wait_for_function(SHOWS, arg=ids)
    except TimeoutError:
        raise AssertionError(f"the line shows {shown(page)} and not {ids}") from None


def moving_done(response: Response) -> bool:
    """Whether this is the answer to a move."""
    return response.request.method == "POST" and response.url.endswith("/move")


@contextmanager
def moved(page: Page) -> Iterator[None]:
    """Wait until a move that the block makes was answered, and its page is shown."""
    with page.expect_response(moving_done):
        yield
    quiet(page)


def quiet(page: Page) -> None:
    """Wait until no list waits for an answer."""
    page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")


def middle(locator: Locator) -> tuple[float, float]:
    """The middle of an element, in the window."""
    box = locator.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


#: Where the item's grip is, and how high the mouse must be so that it is dropped at a place (0 is the first) of the line.
AIM = """
([item, place]) => {
    const rows = [...document.querySelectorAll('[data-sortable] > .item')].filter(row => row.id !== 'i' + item);
    const grip = document.querySelector(`[data-sortable] > #i${item} .grip`).getBoundingClientRect();
    const box = (rows[place] ?? rows.at(-1)).getBoundingClientRect();
    const part = place < rows.length ? 0.25 : 0.75;
    return [grip.x + grip.width / 2, grip.y + grip.height / 2, box.y + box.height * part];
}
"""


def goal(page: Page, item: int, place: int) -> float:
    """How high the mouse must be so that the item is dropped at `place` of the line."""
    return float(page.evaluate(AIM, [item, place])[2])


def lift(page: Page, item: int) -> None:
    """Take the item's row with the mouse, without letting go."""
    x, y, _ = page.evaluate(AIM, [item, 0])
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 6, y)
    page.locator(".ghost").wait_for()


def drag(page: Page, item: int, place: int) -> None:
    """Drag the item with the mouse to a place of the line and let go."""
    x, y, there = page.evaluate(AIM, [item, place])
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, there, steps=STEPS)
    page.mouse.up()


def carry(page: Page, item: int, place: int) -> None:
    """Carry the item with the keyboard to a place of the line and drop it."""
    by = place - shown(page).index(item)
    grip(page, item).press("Space")
    for _ in range(abs(by)):
        page.keyboard.press("ArrowDown" if by > 0 else "ArrowUp")
    page.keyboard.press("Space")
