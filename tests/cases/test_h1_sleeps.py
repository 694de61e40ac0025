"""H1: sleeps survive restarts of everything, wake on time, hold no slot and delay no shutdown."""

import time
from datetime import UTC, datetime, timedelta

from ordering.model import NewItem, State
from tests.cases.kit import Kit, wait_until
from tests.cases.processes import Service
from tests.cases.restartable import Restartable
from tests.conftest import Scale


def catalogue(kit: Kit) -> str:
    return str(kit.catalogue(imports=("tests.cases.probe_tasks", "tests.cases.workflow_tasks"), name="workflows.toml"))


def services(kit: Kit) -> list[Service]:
    """A feeder and a worker with one slot."""
    started = [kit.feeder(ready=False), kit.worker(1, ready=False, RELEVO_CATALOGUE=catalogue(kit))]
    for service in started:
        service.wait_ready()
    return started


def stop(running: list[Service]) -> None:
    for service in running:
        service.term()
    for service in running:
        service.wait(40)


def due(kit: Kit, item: int) -> datetime:
    """When the item's sleep ends."""
    (row,) = kit.sql("select wake_at from relevo.step where item_id = :item and kind = 'sleep'", item=item)
    when: datetime = row.wake_at
    return when


def woke(kit: Kit, item: int) -> datetime:
    """When the step after the sleep began, by the database's clock."""
    kit.wait_state(item, State.SUCCEEDED, seconds=90)
    (row,) = kit.sql("select started_at from relevo.step where item_id = :item and name = 'second'", item=item)
    when: datetime = row.started_at
    return when


def effects(kit: Kit, item: int) -> list[str]:
    return [note.what for note in kit.notes(item)]


def test_a_sleep_outlasts_the_restart_of_everything(own_kit: Kit, own_postgres: Restartable, own_valkey: Restartable, scale: Scale) -> None:
    seconds = scale.seconds(60, least=15)
    running = services(own_kit)
    own_kit.plan("trials")
    item = own_kit.add("trials", "workflow.sleeper", seconds)
    asleep = own_kit.wait_state(item, State.POSTPONED)
    wakes = due(own_kit, item)
    assert asleep.not_before == wakes
    for part in (1 / 3, 2 / 3) if scale.factor >= 1 else (0.1,):
        restart_at = wakes - timedelta(seconds=seconds * (1 - part))
        wait_until(lambda at=restart_at: datetime.now(UTC) > at, seconds, "the time of the restart")  # type: ignore[misc]
        stop(running)
        own_postgres.restart()
        own_valkey.restart()
        running = services(own_kit)
        assert due(own_kit, item) == wakes  # what was restarted does not begin the sleep again
    up = own_kit.sql("select now() as at")[0].at
    began = woke(own_kit, item)
    assert wakes <= began < max(wakes, up) + timedelta(seconds=15)
    assert effects(own_kit, item) == ["step 1", "step 2"]


def test_a_sleep_that_ends_while_everything_is_down(own_kit: Kit, own_postgres: Restartable, scale: Scale) -> None:
    seconds = scale.seconds(20, least=6)
    running = services(own_kit)
    own_kit.plan("trials")
    item = own_kit.add("trials", "workflow.sleeper", seconds)
    own_kit.wait_state(item, State.POSTPONED)
    wakes = due(own_kit, item)
    stop(running)
    own_postgres.stop()
    time.sleep(max(0.0, (wakes - datetime.now(UTC)).total_seconds()) + scale.seconds(40, least=1))
    own_postgres.start()
    services(own_kit)
    (up,) = own_kit.sql("select now() as at")
    assert woke(own_kit, item) - up.at < timedelta(seconds=15)
    assert effects(own_kit, item) == ["step 1", "step 2"]


def test_many_sleepers_and_one_slot(kit: Kit, scale: Scale) -> None:
    """They hold neither the slot nor a shutdown; after three days each goes on, once."""
    _, worker = services(kit)
    kit.plan("trials", concurrency=20, stop_grace=timedelta(minutes=10))
    sleepers = kit.add_many("trials", [NewItem("workflow.sleeper", [3 * 86_400])] * scale.rounds(500, least=40))
    asleep = "select count(*) from relevo.item where state = 'postponed'"
    wait_until(lambda: kit.sql(asleep)[0][0] == len(sleepers), 90, "all sleep")
    wait_until(lambda: kit.messages() == 0, 30, "the last message is acknowledged")
    assert kit.sql("select 1 from relevo.dispatch where ended_at is null") == []
    kit.plan("daily")
    kit.wait_start(kit.add("daily", "probe.nap"))
    worker.term()
    assert worker.wait(60) == 0, "nothing in it is waited for, ten minutes long"
    kit.worker(1, RELEVO_CATALOGUE=catalogue(kit))
    # Three days pass.
    kit.sql("update relevo.item set not_before = not_before - interval '3 days' where state = 'postponed'")
    kit.sql("update relevo.step set wake_at = wake_at - interval '3 days' where kind = 'sleep'")
    kit.wait_done(90, sleepers)
    assert all(effects(kit, item) == ["step 1", "step 2"] for item in sleepers)
    assert {kit.item(item).result for item in sleepers} == {30}
