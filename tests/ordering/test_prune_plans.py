"""Retention among 100,000s of rows: each statement, and each foreign key that a delete checks, finds its rows by an index."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, text

from ordering import db, plans, prune
from tests import servers
from tests.ordering.acts import PROCESS, plan
from tests.ordering.test_indexes import explained
from tests.ordering.vacuumed import vacuum

COUNT = 30_000
TABLES = ("item", "attempt", "output", "step", "event", "dispatch", "run", "fact", "session")


@pytest.fixture(scope="module")
def full(server_url: str, template: str) -> Iterator[Engine]:
    """A plan with 30,000 of everything, a third of it old, and 50 small plans."""
    with servers.database(server_url, template) as url:
        made = db.engine(url)
        with made.begin() as tx:
            for n in range(50):
                plan(tx, f"p{n}")
            plan(tx)
            fill(tx, COUNT)
        vacuum(made, *TABLES)
        yield made
        made.dispose()


def fill(tx: Connection, count: int) -> None:
    """`count` items of the plan `line`, one settled each 4 minutes or so from 90 days ago on, each with all that an item leaves."""
    given = {"plan": plans.get(tx, "line").id, "count": count, **vars(PROCESS)}
    for statement in (
        """insert into relevo.session (worker, host, boot_id, pid_namespace, pid, pid_started, opened_at, closed_at)
           select :worker, :host, :boot_id, :pid_namespace, :pid, :pid_started, at, at from (
               select now() - interval '90 days' * n / :count as at from generate_series(1, :count) n) x""",
        """insert into relevo.fact (type, data, heard, at)
           select 'f', '{}', 1, now() - interval '90 days' * n / :count from generate_series(1, :count) n""",
        """insert into relevo.dispatch (plan_id, queue, task, claimed_at, session_id, ended_at)
           select :plan, 'q', 'noop', opened_at, id, closed_at from relevo.session""",
        """insert into relevo.item (plan_id, position, state, task, settled_at, fact_id, repairs)
           select :plan, n, 'succeeded', 'noop', now() - interval '90 days' * n / :count, n, null from generate_series(1, :count) n""",
        """insert into relevo.attempt (item_id, number, dispatch_id, session_id, started_at, outcome, counts)
           select id, 1, gen_random_uuid(), id, settled_at, 'succeeded', true from relevo.item""",
        "insert into relevo.output (item_id, attempt, head) select id, 1, 'said' from relevo.item",
        """insert into relevo.step (item_id, number, name, kind, done, attempt, started_at)
           select id, 1, 'one', 'step', true, 1, settled_at from relevo.item""",
        """insert into relevo.event (at, actor, action, plan_id, item_id)
           select settled_at, 'test', 'add', :plan, id from relevo.item order by settled_at""",
        """insert into relevo.run (plan_id, on_failure, started_by, started_at, ended_at, ended_as)
           select :plan, 'halt', 'test', settled_at, settled_at, 'drained' from relevo.item order by settled_at""",
    ):
        tx.execute(text(statement), {name: value for name, value in given.items() if f":{name}" in statement})


@pytest.mark.parametrize("kind", [("look", False), *prune.STATEMENTS])
def test_no_statement_scans_a_table(full: Engine, kind: tuple[str, bool]) -> None:
    name = kind[0]
    statement = prune.DUE if name == "look" else prune.STATEMENTS[kind]
    with full.connect() as tx:
        at, first = prune.FIRST_DISPATCH if name == "dispatch" else prune.FIRST
        given = {"plan_id": plans.get(tx, "line").id, "at": at, "id": first, "limit": 100}
        given = {key: value for key, value in given.items() if f":{key}" in statement.text}
        found = explained(tx, statement, given)
        gone = [node["Actual Rows"] for node in found if node["Node Type"] == "ModifyTable"]
    scanned = {node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"}
    assert not scanned & set(TABLES)
    looked = sum(node["Actual Rows"] * node["Actual Loops"] for node in found if node.get("Relation Name") in TABLES)
    assert looked < 2000
    if name in ("item", "run"):
        assert gone == [100]


@pytest.mark.parametrize("table", ["item", "dispatch", "session", "fact"])
def test_what_points_to_a_row_is_found_by_an_index(full: Engine, table: str) -> None:
    """A delete of a row that is pointed to asks each table that points; with these settings a scan is what it would choose last."""
    pointing = """
        select c.conrelid::regclass::text as "from", a.attname as column from pg_constraint c
        join pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
        where c.contype = 'f' and c.confrelid = cast(:table as regclass)"""
    with full.connect() as tx:
        keys = tx.execute(text(pointing), {"table": f"relevo.{table}"}).all()
        assert keys
        for key in keys:
            kind = "uuid" if table == "dispatch" else "bigint"
            value = tx.execute(text(f"select id from relevo.{table} limit 1")).scalar_one()
            asked = text(f"select 1 from only {key._mapping['from']} x where {key.column} = cast(:value as {kind}) for key share of x")
            nodes = [node["Node Type"] for node in explained(tx, asked, {"value": value})]
            assert "Seq Scan" not in nodes, (key, nodes)
