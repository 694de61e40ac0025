"""Pages of a plan's items walk an index from where the page before ended, however many items there are."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import add, db, listing
from ordering.errors import Invalid
from ordering.model import NewItem
from tests import servers
from tests.ordering.acts import ACTOR, plan
from tests.ordering.test_indexes import explained
from tests.ordering.vacuumed import vacuum

COUNT = 20_000


@pytest.fixture(scope="module")
def full(server_url: str, template: str) -> Iterator[Engine]:
    """A plan with 20,000 waiting items and as many settled ones."""
    with servers.database(server_url, template) as url:
        made = db.engine(url)
        with made.begin() as tx:
            plan(tx)
            add.add_many(tx, "line", (NewItem("noop") for _ in range(2 * COUNT)), actor=ACTOR)
            settle = "update relevo.item set state = 'succeeded', settled_at = now() - make_interval(secs => 50000 - id) where id <= :count"
            tx.execute(text(settle), {"count": COUNT})
        vacuum(made, "item")
        yield made
        made.dispose()


@pytest.fixture
def tx(full: Engine) -> Iterator[Connection]:
    with full.connect() as connection:
        yield connection


@pytest.mark.parametrize("state", ["unsettled", "waiting", "settled", "succeeded"])
@pytest.mark.parametrize("deep", [False, True])
def test_a_page_reads_little_more_than_itself(tx: Connection, state: str, deep: bool) -> None:
    where, order = (
        (listing.UNSETTLED[state], listing.IN_LINE) if state in listing.UNSETTLED else (listing.ENDED[state], listing.LATEST_FIRST)
    )
    middle = text(f"select {order.column} as place, i.id from relevo.item i where i.id = :id")
    row = tx.execute(middle, {"id": COUNT // 2 if state in listing.ENDED else COUNT + COUNT // 2}).one()
    values = {"plan_id": 1, "scan": 101, "kind": None, "text": None, "limit": 101, **({"place": row.place, "id": row.id} if deep else {})}
    found = explained(tx, text(listing._look(where, order, after=deep)), values)
    scans = [node for node in found if node.get("Relation Name") == "item"]
    assert scans
    assert max(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in scans) < 300, scans


def test_what_is_not_there_is_empty_and_a_cursor_of_another_list_is_refused(tx: Connection) -> None:
    assert listing.items(tx, 1, state="failed", limit=10).items == []
    page = listing.items(tx, 1, state="settled", limit=10)
    assert [each.id for each in page.items] == list(range(COUNT, COUNT - 10, -1))
    with pytest.raises(Invalid, match="cursor"):
        listing.items(tx, 1, state="waiting", limit=10, after=page.next)
