"""A host that goes away without a word: shown within 8 s, nothing runs twice, and it goes on when it comes back."""

import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from kombu.utils.url import parse_url
from sqlalchemy import make_url

from app.embedded import Postgres
from ordering import db
from ordering.model import State
from tests.cases.checks import checks
from tests.cases.far_host import FarHost, far_host
from tests.cases.kit import Kit, wait_until
from tests.cases.proxy import Proxy
from tests.cases.restartable import Restartable

pytestmark = [pytest.mark.root, pytest.mark.timeout(180)]


@pytest.fixture
def far() -> Iterator[FarHost]:
    with far_host() as made:
        yield made


@pytest.fixture
def near_kit(far: FarHost, broker_url: str, tmp_path: Path) -> Iterator[Kit]:
    """A kit whose Postgres listens on the address that the far host sees: only the server's own TCP can tell that it is gone."""
    server = Postgres(tmp_path / "postgres", {"fsync": "off", "listen_addresses": far.near})
    server.prepare()
    with (tmp_path / "postgres" / "cluster" / "pg_hba.conf").open("a") as rules:
        rules.write(f"host all all {far.far}/32 scram-sha-256\n")
    restartable = Restartable(server, tmp_path / "postgres.log")
    restartable.start()
    complaints: list[str] = []
    try:
        db.migrate(server.url)
        made = Kit(server.url, broker_url, tmp_path)
        try:
            yield made
        finally:
            far.back_if_gone()
            complaints = made.close()
    finally:
        restartable.stop()
    assert not complaints, "\n".join(complaints)


def test_held_goes_on_and_requeued_runs_elsewhere(near_kit: Kit, far: FarHost) -> None:
    kit = near_kit
    parts = parse_url(kit.broker_url)
    to_broker = Proxy(parts["hostname"], parts["port"], listen=far.near)
    database = make_url(kit.database_url).difference_update_query(["host", "port"]).set(host=far.near, port=5432)
    environment = {
        "RELEVO_DATABASE_URL": database.render_as_string(hide_password=False),
        "RELEVO_BROKER_URL": kit.broker_url.replace(f"{parts['hostname']}:{parts['port']}", f"{far.near}:{to_broker.port}"),
    }
    try:
        kit.feeder()
        words = far.command(sys.executable, "-P", "-m", "workers.worker", "--slots", "2")
        kit.start_program("worker", ["-c", f"import os; os.execv({words[0]!r}, {words!r})"], **environment)
        kit.plan("held")
        kit.plan("again")
        release = kit.folder / "release"
        held = kit.add("held", "probe.wait_for", str(release))
        again = kit.add("again", "probe.nap_again", 60)
        for item in (held, again):
            kit.wait_start(item)
        near = kit.worker(1)
        with kit.tx() as tx:
            tx.exec_driver_sql("update relevo.item set args = '[0]' where id = %s", (again,))

        gone_at = time.monotonic()
        far.gone()
        for item in (held, again):
            wait_until(partial(kit.outcomes, item), 15, "the interruption is shown")
        assert kit.state(held) is State.INTERRUPTED

        # TCP gives up within 3 s of silence, and the body must be gone before it runs elsewhere, which is after 5 s.
        second = kit.wait_start(again, number=2)
        (end,) = [note for note in kit.ends(again) if note.attempt == 1]
        assert end.at < second.at
        assert end.at < gone_at + 30, "its body would have gone on for 60 s"
        assert second.pid in near.pool()
        kit.wait_state(again, State.SUCCEEDED)
        assert kit.state(held) is State.INTERRUPTED
        assert not kit.ends(held)

        far.back()
        kit.wait_state(held, State.RUNNING)
        release.touch()
        kit.wait_done()
        assert kit.outcomes(held) == ["succeeded"]
        assert len(kit.starts(held)) == 1
        assert kit.outcomes(again) == ["interrupted", "succeeded"]
        checks(kit)
    finally:
        far.back_if_gone()
        to_broker.close()
