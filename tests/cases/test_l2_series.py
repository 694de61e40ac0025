"""L2: dead workers are not 'up', and whatever happens, and however often, makes no new series."""

import psutil

from ordering import decision, tally
from ordering.errors import MayStillRun
from ordering.model import NewItem, OnFailure, State
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.cases.processes import ROOT
from tests.conftest import Scale
from tests.monitoring.scraping import Scraped, labels_of
from tests.ports import free_port
from tests.servers import fresh_name


def test_nothing_that_happens_makes_series(kit: Kit, scale: Scale) -> None:
    port = free_port()
    exporter = kit.start_program("exporter", [str(ROOT / "app/exporting.py")], RELEVO_EXPORTER_PORT=str(port))
    scraped = Scraped(f"http://127.0.0.1:{port}")
    kit.feeder()
    kit.plan("failing", on_failure=OnFailure.CONTINUE)
    kit.plan("stream", concurrency=4)
    kit.add("failing", "probe.fail", "the first")
    kit.add("stream", "probe.give")
    failures, many = scale.rounds(500, least=20), scale.rounds(500, least=50)
    names = [fresh_name("worker") for _ in range(scale.rounds(20, least=2))]
    first = kit.worker(1, name=names[0])
    wait_until(lambda: kit.view("failing").counts[State.FAILED] == 1, 60, "the first failure")
    kit.wait_done(wanted=[kit.added[1]])
    for _ in range(30):
        scraped.text()
    series, memory = set(scraped.figures()), psutil.Process(exporter.pid).memory_info().rss

    with kit.tx() as tx:
        decision.skip(tx, kit.added[0], actor=ACTOR)
    added = kit.add_many("failing", [NewItem("probe.fail", [fresh_name("unique")]) for _ in range(failures)])
    stream = kit.add_many("stream", [NewItem("probe.give", [fresh_name("value")]) for _ in range(many)])
    living = first
    for name in names[1:]:
        wait_until(lambda: scraped("relevo_workers") == 1, 30, "one process is up")
        living.kill_all()
        wait_until(lambda: scraped("relevo_workers") == 0, 30, "a dead worker is not up")
        living = kit.worker(1, name=name)

    # The one that runs when its worker is killed is interrupted and holds the line until it is decided.
    def decide() -> bool:
        for row in kit.sql("select id from relevo.item where state = 'interrupted' and at_head"):
            try:
                kit.retry(row.id)
            except MayStillRun:
                return False
        return not kit.sql("select from relevo.item where id = any(:ids) and state not in ('failed', 'succeeded')", ids=[*added, *stream])

    wait_until(decide, 120, "everything has ended", pause=0.2)
    for _ in range(100):
        text = scraped.text()
    assert set(scraped.figures()) == series
    assert psutil.Process(exporter.pid).memory_info().rss < memory + 10e6
    assert not [value for value in labels_of(text) if any(word in value for word in ("unique", "value-", "worker-"))]
    with kit.tx() as tx:
        found = {each.task: each for each in tally.totals(tx)}
    assert found["probe.fail"].failed == failures + 1
    assert found["probe.give"].succeeded == many + 1
    attempts = kit.sql("select count(*) from relevo.attempt where outcome = 'interrupted'")[0][0]
    assert sum(each.interrupted for each in found.values()) == attempts
