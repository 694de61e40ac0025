"""With 100,000 dead letters among settled items, every query of theirs finds its rows by an index made for them."""

import time
from collections.abc import Iterator
from decimal import Decimal

import pytest
from sqlalchemy import Connection, Engine, TextClause, text

from ordering import clock, db, dead, dead_decision, plans
from ordering.dead import Cursor, Which
from ordering.refused import REFUSED
from tests import servers
from tests.ordering.acts import plan
from tests.ordering.letters import stream
from tests.ordering.test_indexes import explained

COUNT = 100_000
CAUSES = 16
LETTERS = text("""
    insert into relevo.item (plan_id, position, state, task, title, error, attempts, tries, unresolved_at, settled_at)
    select :plan_id, n, case n % 5 when 0 then 'succeeded' else 'failed' end, 'noop', 'To ' || n || repeat(' and so on', 30),
        chr(65 + n % :causes) || ': card ' || n, 1, 1, now() - n * interval '1 s',
        case n % 5 when 0 then now() end
    from generate_series(1, cast(:count as integer) * 5 / 4) n
""")
REFUSALS = text("""
    insert into relevo.event (actor, action, reason) select 'w', case n % 1000 when 0 then 'refuse' else 'add' end, 'r'
    from generate_series(1, 100000) n
""")


VISIBLE = text("select bool_and(relallvisible >= relpages * 0.95 and relpages > 1000) from pg_class where oid = 'relevo.item'::regclass")


@pytest.fixture(scope="module")
def full(server_url: str, template: str) -> Iterator[Engine]:
    with servers.database(server_url, template) as url:
        made = db.engine(url, settings={"statement_timeout": "120000"})
        with made.begin() as tx:
            small, large = stream(tx, "thumbs"), stream(tx)
            plan(tx)
            tx.execute(LETTERS, {"plan_id": small, "count": 160, "causes": CAUSES})
            tx.execute(LETTERS, {"plan_id": large, "count": COUNT, "causes": CAUSES})
            tx.execute(REFUSALS)
        with made.connect().execution_options(isolation_level="AUTOCOMMIT") as tx:
            # A walk over an index alone is cheap where the pages are known to be visible to all, which somebody's open snapshot delays.
            deadline = time.monotonic() + 30
            while not tx.execute(VISIBLE).scalar_one() and time.monotonic() < deadline:
                tx.execute(text("vacuum analyze"))
        yield made
        made.dispose()


def touched(tx: Connection, statement: TextClause, values: dict[str, object]) -> tuple[set[str], float]:
    """The indexes that the statement reads, and how many rows of item and event it meets; no table may be scanned for it."""
    found = explained(tx, statement, values)
    assert not [node for node in found if node["Node Type"] == "Seq Scan" and node["Relation Name"] in ("item", "event")]
    rows = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in found
        if node.get("Relation Name") in ("item", "event")
    )
    return {node["Index Name"] for node in found if "Index Name" in node}, rows


@pytest.fixture
def read(full: Engine) -> Iterator[Connection]:
    with full.connect() as tx:
        yield tx


def choices(tx: Connection) -> list[Which]:
    chosen = dead.which(tx, plan="mails")
    (group, *_) = dead.groups(tx, chosen, limit=1)
    return [Which(), chosen, Which(None, group.group), Which(chosen.plan_id, group.group)]


@pytest.mark.parametrize("position", [None, 10_000, 120_000])
@pytest.mark.parametrize("number", range(4), ids=["all", "of a plan", "of a group", "of both"])
def test_a_page_and_a_batch_meet_only_their_own_rows(read: Connection, number: int, position: int | None) -> None:
    chosen = choices(read)[number]
    after = None if position is None else Cursor(plans.get(read, "mails").id, Decimal(position))
    values = {**dead.behind(chosen, after), "limit": 50}
    batch = dead.page(dead_decision.CHOSEN, chosen, dead_decision.BY)
    for statement, more in ((dead.page(dead.LETTER, chosen), {}), (batch, {"until": clock.now(read)})):
        indexes, rows = touched(read, statement, {**values, **more})
        assert ("item_unresolved" if chosen.group is None else "item_dead") in indexes
        assert rows < 300, "not much more than a page"


def test_causes_are_counted_in_one_walk_over_their_index(read: Connection) -> None:
    everything = choices(read)[0]
    indexes, rows = touched(read, dead.grouping(everything), {"limit": 50})
    assert "item_dead" in indexes
    assert rows <= COUNT + 160 + 4 * CAUSES
    (first, *_) = found = dead.groups(read, everything, limit=50)
    assert (len(found), sum(each.count for each in found)) == (2 * CAUSES, COUNT + 160)
    assert abs(first.count - COUNT / CAUSES) < 10
    assert first.pattern.endswith(": card #")


def test_a_group_is_counted_by_its_own_rows(read: Connection) -> None:
    group = choices(read)[3]
    counting = text(f"select count(*) from relevo.item i join relevo.plan p on p.id = i.plan_id where {group.where()}")
    indexes, rows = touched(read, counting, group.values())
    assert ("item_dead" in indexes, rows) == (True, dead.count(read, group))
    assert abs(rows - COUNT / CAUSES) < 10


def test_the_latest_refused_messages_are_found_among_all_events(read: Connection) -> None:
    indexes, rows = touched(read, REFUSED, {"limit": 20})
    assert (indexes, rows) == ({"event_refused"}, 20)
