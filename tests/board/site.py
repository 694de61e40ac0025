"""The board to be tested: its server, and what plans and items its pages shall show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, text
from starlette.requests import Request

from app.caller import Caller, Known, Role
from ordering import add, finish, items, plans
from ordering.decide import Ended
from ordering.model import Claimed, Item, NewItem
from tests.app.web import serving
from tests.ordering import acts
from tests.servers import fresh_name

ELSE = "somebody else"  # who acts beside the board


class Plan:
    """A plan of one test, and what happens in it beside the board."""

    def __init__(self, engine: Engine, name: str, plan_id: int, ids: list[int]) -> None:
        self.engine, self.name, self.id, self.ids = engine, name, plan_id, ids
        self.path = f"/plans/{name}"

    def order(self) -> list[int]:
        """The ids of what waits, in the order of the line."""
        with self.engine.connect() as tx:
            return acts.order(tx, self.name)

    def item(self, item_id: int) -> Item:
        """The item as it is now."""
        with self.engine.connect() as tx:
            return items.get(tx, item_id)

    def events(self, action: str) -> int:
        """How many events of this kind the trail has of the plan."""
        with self.engine.connect() as tx:
            query = text("select count(*) from relevo.event where plan_id = :id and action = :action")
            return int(tx.execute(query, {"id": self.id, "action": action}).scalar_one())

    def do(self, verb: Any, *args: Any, **named: Any) -> Any:
        """A verb of `ordering`, done by somebody else."""
        with self.engine.begin() as tx:
            return verb(tx, *args, actor=ELSE, **named)

    def run(self) -> Claimed:
        """Hand the first item out: it is at the head and running."""
        with self.engine.begin() as tx:
            return acts.run(tx, self.name)

    def end(self, claimed: Claimed, how: Ended = acts.BROKEN) -> int:
        """End what runs, as a failure unless said otherwise; the item's id."""
        with self.engine.begin() as tx:
            assert finish.finish(tx, claimed, how) is not None
        return claimed.item_id


class Site:
    """A board at `url` on `engine`."""

    def __init__(self, url: str, engine: Engine) -> None:
        self.url, self.engine = url, engine

    def plan(self, titles: Sequence[str] | int = 6, *, start: bool = False, item: dict[str, Any] | None = None, **settings: Any) -> Plan:
        """A new plan with an item for each title (or that many), started or not."""
        name = fresh_name("plan")
        named = [f"Item {n}" for n in range(1, titles + 1)] if isinstance(titles, int) else titles
        with self.engine.begin() as tx:
            made = plans.create(tx, name, actor=acts.ACTOR, **settings)
            fields = {"task": "http", "kwargs": {"url": "http://127.0.0.1:1/"}, "kind": "fix", "max_attempts": 1, **(item or {})}
            new = [NewItem(title=title, **fields) for title in named]
            ids = [each.id for each in add.add_many(tx, name, new, actor=acts.ACTOR)]
            if start:
                plans.start(tx, name, actor=acts.ACTOR)
        return Plan(self.engine, name, made.id, ids)


def admin(request: Request) -> Caller:
    """Everybody may do everything."""
    return Caller("somebody", Role.ADMIN)


@contextmanager
def serving_site(engine: Engine, known: Known = admin, **options: Any) -> Iterator[Site]:
    """A board on `engine` for the block."""
    with serving(engine, known, **options) as client:
        yield Site(str(client.base_url).rstrip("/"), engine)
