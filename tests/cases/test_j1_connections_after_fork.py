"""J1: no connection crosses a fork, with TLS to Postgres, children that are recycled, and modules that talk at import."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ordering.model import NewItem
from tests.cases.brokers import both_brokers
from tests.cases.checks import checks
from tests.cases.kit import Kit, wait_until
from tests.cases.tls import TlsProxy, before_database
from tests.conftest import Scale

SLOTS, RECYCLE = 8, 5
# Postgres connections of one worker with s slots: a session for each, the warden's, the parent's pool and what the project's
# own engine keeps, in the parent and in each child; a feeder has its listener and one for its rounds.
FOR_WORKER, FOR_FEEDER = 2 * SLOTS + 4, 3
BROKEN = re.compile(r"SSL|TLS|protocol|synchroni[sz]ation|lost track|another command|bad record|decryption", re.IGNORECASE)
BACKENDS = """
    select pid, application_name, client_addr from pg_stat_activity
    where datname = current_database() and application_name like 'relevo%' and application_name <> 'relevo case'
"""


@pytest.fixture
def tls(database_url: str, tmp_path: Path) -> Iterator[tuple[TlsProxy, str]]:
    """TLS in front of the test's database; asked for before the kit, so that it outlives the kit's services."""
    made, url = before_database(database_url, tmp_path)
    yield made, url
    made.close()


@both_brokers
def test_recycled_children_share_no_connection(tls: tuple[TlsProxy, str], kit: Kit, scale: Scale) -> None:
    proxy, url = tls
    catalogue = kit.catalogue(["tests.cases.early_import", "tests.cases.probe_tasks"], "early.toml")
    changes = {"RELEVO_DATABASE_URL": url, "RELEVO_CATALOGUE": str(catalogue), "PROBE_RECYCLE": str(RECYCLE)}
    plans, each = scale.rounds(40, least=8), scale.rounds(25, least=8)
    for plan in range(plans):
        kit.plan(f"p{plan}", start=False)
    for plan in range(plans):
        kit.add_many(f"p{plan}", [NewItem("probe.ask", [1000 * plan + number]) for number in range(each)], start=False)
    (worker,) = kit.up(workers=1, slots=SLOTS, **changes)
    for plan in range(plans):
        kit.start(f"p{plan}")
    kit.wait_done(scale.seconds(1500, least=90))  # 200 forks: against a hang only

    bodies: dict[int, int] = {}
    for start in kit.starts():
        bodies[start.pid] = bodies.get(start.pid, 0) + 1
    assert len(kit.starts()) == plans * each
    assert max(bodies.values()) <= RECYCLE
    assert len(bodies) >= plans * each / RECYCLE
    for item in kit.sql("select args, result from relevo.item"):
        assert item.result == item.args[0]

    def sessions() -> dict[str, set[int]]:
        held: dict[str, set[int]] = {}
        for row in kit.sql(BACKENDS + " and application_name like 'relevo session%'"):
            held.setdefault(row.application_name, set()).add(row.pid)
        return held

    wanted = lambda: {f"relevo session {pid}" for pid in worker.pool()}  # noqa: E731
    wait_until(lambda: set(sessions()) == wanted() and len(wanted()) == SLOTS, 30, "each child has a session, and nobody else")
    assert all(len(backends) == 1 for backends in sessions().values())
    wait_until(lambda: len(kit.sql(BACKENDS)) <= FOR_WORKER + FOR_FEEDER, 30, lambda: f"few connections: {kit.sql(BACKENDS)}")
    assert proxy.handshakes >= len(bodies), "every session is one handshake of its own"
    broken = [line for line in kit.logs().splitlines() if BROKEN.search(line)]
    assert not broken, broken
    checks(kit)
