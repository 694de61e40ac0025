"""What the address of a plan's page asks for: a filter, a part of the line, a dialog about some items."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.form import whole
from app.schemas import BIGGEST_ID
from ordering import listing
from ordering.errors import Invalid
from ordering.items import KIND_LIMIT
from ordering.text import checked

ROWS, MOST_ROWS = 100, 300  # waiting items of the page: at first, and at the most (a row is 2 kB)
MOST_TICKED = 500  # items of one act


@dataclass(frozen=True)
class Query:
    """`text`, `kind` and `state` filter; `after` is where the line goes on, `rows` how many of it; `ask` is the dialog that is open."""

    text: str = ""
    kind: str = ""
    state: str = ""
    after: str = ""
    rows: int = ROWS
    ask: str = ""
    items: tuple[int, ...] = ()

    @property
    def filtered(self) -> bool:
        """Whether only some items are asked for."""
        return bool(self.text or self.kind or self.state)

    def asking(self, ask: str, items: Iterable[int]) -> Query:
        """The same with a dialog open."""
        return replace(self, ask=ask, items=tuple(items))


def parsed(pairs: Iterable[tuple[str, str]]) -> Query:
    """The query of these parameters; those of other pages are passed over. Raises Invalid."""
    given: dict[str, str] = {}
    items: list[int] = []
    for name, value in pairs:
        if name == "item":
            items.append(whole("item", value, 1, BIGGEST_ID))
        else:
            given.setdefault(name, value.strip())
    state = given.get("state", "")
    if state and state not in listing.CHOICES:
        raise Invalid("state", f"{state[:40]!r} is none; use one of {', '.join(listing.CHOICES)}.")
    if len(items) > MOST_TICKED:
        raise Invalid("item", f"stands {len(items)} times; take at most {MOST_TICKED} at a time.")
    return Query(
        text=checked("text", given.get("text", ""), 200),
        kind=checked("kind", given.get("kind", ""), KIND_LIMIT),
        state=state,
        after=checked("after", given.get("after", ""), 100),
        rows=whole("rows", given.get("rows") or str(ROWS), 1, MOST_ROWS),
        ask=given.get("ask", "")[:20],
        items=tuple(dict.fromkeys(items)),
    )
