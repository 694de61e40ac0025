"""Plans with items in every state, for tests of the board's pages."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine

from ordering import add, items, plans
from ordering.decide import Ended
from ordering.model import Item, NewItem
from tests.ordering import acts
from tests.servers import fresh_name


class Line:
    """A plan of one test with items of these titles, and what happens in it beside the board."""

    def __init__(
        self, engine: Engine, titles: int | list[str] = 5, *, start: bool = False, item: dict[str, Any] | None = None, **plan: Any
    ) -> None:
        self.engine, self.name = engine, fresh_name("plan")
        self.path = f"/plans/{self.name}"
        named = [f"Item {number}" for number in range(1, titles + 1)] if isinstance(titles, int) else titles
        fields = {"task": "http", "kwargs": {"url": "http://127.0.0.1:1/"}, "kind": "fix", "max_attempts": 1, **(item or {})}
        with engine.begin() as tx:
            self.id = plans.create(tx, self.name, actor=acts.ACTOR, **plan).id
            added = add.add_many(tx, self.name, [NewItem(title=title, **fields) for title in named], actor=acts.ACTOR)
            if start:
                plans.start(tx, self.name, actor=acts.ACTOR)
        self.ids = [each.id for each in added]

    def order(self) -> list[int]:
        """What waits, in its order."""
        with self.engine.begin() as tx:
            return acts.order(tx, self.name)

    def places(self) -> list[int]:
        """The line as places in the order of the beginning, from 1."""
        return [self.ids.index(each) + 1 for each in self.order()]

    def item(self, place: int) -> Item:
        """The item that was at this place in the beginning, as it is now."""
        with self.engine.begin() as tx:
            return items.get(tx, self.ids[place - 1])

    def id_of(self, place: int) -> int:
        """The id of the item that was at this place in the beginning."""
        return self.ids[place - 1]

    def run(self) -> None:
        """Hand out the next item: it runs."""
        with self.engine.begin() as tx:
            acts.run(tx, self.name)

    def fail(self, how: Ended = acts.BROKEN) -> int:
        """Run the next item to this end; its id."""
        with self.engine.begin() as tx:
            return acts.end(tx, how, self.name)

    def lose(self, *, closed: bool = True) -> int:
        """Run the next item and lose its process; its id."""
        with self.engine.begin() as tx:
            claimed = acts.run(tx, self.name)
            acts.lose(tx, claimed, closed=closed)
            return claimed.item_id

    def events(self) -> list[str]:
        """The actions of the plan's trail, oldest first."""
        from sqlalchemy import text

        with self.engine.begin() as tx:
            return list(tx.execute(text("select action from relevo.event where plan_id = :id order by id"), {"id": self.id}).scalars())
