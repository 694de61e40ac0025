"""K2: several feeders at the tick, one killed just before it, none for a while: each tick is made once, missed ones as documented."""

import random
import signal
import time
from datetime import datetime, timedelta

from sqlalchemy import text

from ordering import clock, schedule
from ordering.model import Missed
from ordering.schedule import NewSchedule
from tests.cases.checks import checks
from tests.cases.kit import ACTOR, Kit, wait_until
from tests.conftest import Scale

MINUTE = timedelta(minutes=1)
SCHEDULES = 40


def now(kit: Kit) -> datetime:
    with kit.tx() as tx:
        return clock.now(tx)


def this_minute(kit: Kit) -> datetime:
    return now(kit).replace(second=0, microsecond=0)


def due_now(kit: Kit, name: str) -> None:
    """A schedule for each minute, of which the tick of this minute has not been made yet."""
    with kit.tx() as tx:
        schedule.create(tx, NewSchedule(name, "work", "* * * * *", "probe.nap", [0.0], title=name, missed=Missed.ALL), actor=ACTOR)
        at = clock.now(tx).replace(second=0, microsecond=0)
        tx.execute(text("update relevo.schedule set next_at = :at where name = :name"), {"at": at, "name": name})


def made(kit: Kit) -> dict[str, list[datetime]]:
    """The ticks made by each schedule, in the order of their items."""
    found: dict[str, list[datetime]] = {}
    for row in kit.sql("select title, key from relevo.item where key like 'schedule %' order by id"):
        found.setdefault(row.title, []).append(datetime.fromisoformat(row.key.split()[-1]))
    return found


def all_ticked(kit: Kit, minute: datetime) -> bool:
    return not kit.sql("select 1 from relevo.schedule where last_at < :minute and not paused", minute=minute)


def everything_runs(kit: Kit) -> None:
    wait_until(lambda: not kit.sql("select 1 from relevo.item where state <> 'succeeded'"), 60, "what the ticks added has run")


def test_each_tick_is_made_once_by_three_feeders(kit: Kit, scale: Scale) -> None:
    rounds = scale.rounds(40, least=3)
    chance = random.Random(2)
    kit.plan("work", start=False, autostart=True)
    feeders = [kit.feeder(ready=False) for _ in range(3)]
    worker = kit.worker(1, ready=False)
    for service in (*feeders, worker):
        service.wait_ready()

    def kill_one() -> None:
        feeders.pop(0).send(signal.SIGKILL)
        feeders.append(kit.feeder())

    for number in range(rounds):
        for each in range(SCHEDULES):
            due_now(kit, f"r{number}-{each}")
        time.sleep(chance.uniform(0, 0.5))  # in the middle of the ticks, or not
        kill_one()
        wait_until(lambda number=number: len(made(kit)) == (number + 1) * SCHEDULES, 60, f"round {number}")  # type: ignore[misc]
        # Sixteen hundred schedules of a minute would be a test of this machine's speed.
        kit.sql("update relevo.schedule set paused = true where name like :old", old=f"r{number - 5}-%")
    for _ in range(scale.rounds(6, least=0)):
        minute = this_minute(kit) + MINUTE
        wait_until(lambda minute=minute: now(kit) > minute - timedelta(seconds=1), 60, "the 59th second")  # type: ignore[misc]
        kill_one()
        wait_until(lambda minute=minute: all_ticked(kit, minute), 50, f"the ticks of {minute}")  # type: ignore[misc]

    kit.sql("update relevo.schedule set paused = true")  # or a minute that begins now would tick between two looks
    everything_runs(kit)
    last_at = {row.name: row.last_at for row in kit.sql("select name, last_at from relevo.schedule")}
    assert len(last_at) == rounds * SCHEDULES
    for name, ticks in made(kit).items():
        # Each minute once, from the first on to the one that the schedule remembers: nothing twice, nothing left out.
        assert ticks == [ticks[0] + MINUTE * number for number in range(len(ticks))], name
        assert ticks[-1] == last_at[name] or last_at[name] is None, name
    assert not kit.events("miss")
    for service in kit.services:
        for word in ("cannot tick", "ERROR", "duplicate key", "deadlock"):
            assert word not in service.text(), service.name
    checks(kit)


def test_ticks_that_nobody_made_are_made_up_for_as_the_schedule_says(kit: Kit) -> None:
    kit.plan("work", start=False, autostart=True)
    feeder = kit.feeder()
    kit.worker(1)
    feeder.send(signal.SIGKILL)
    feeder.process.wait(60)
    wait_until(lambda: now(kit).second < 50, 30, "a minute with time left in it")
    # Nobody was there for seven ticks, the last of them in this minute.
    latest = this_minute(kit)
    outage = latest - 6 * MINUTE
    with kit.tx() as tx:
        for missed in Missed:
            new = NewSchedule(missed.value, "work", "* * * * *", "probe.nap", [0.0], title=missed.value, missed=missed)
            schedule.create(tx, new, actor=ACTOR)
        tx.execute(text("update relevo.schedule set next_at = :outage"), {"outage": outage})
    kit.feeder()
    wait_until(lambda: len(made(kit)) == 3, 30, "the ticks are made up for")
    found = {name: [at for at in ticks if at <= latest] for name, ticks in made(kit).items()}
    assert found["all"] == [outage + MINUTE * number for number in range(7)]
    if now(kit) < latest + MINUTE:  # the feeder was not slower than the minute
        assert found["one"] == found["skip"] == [latest]
    assert sorted(event.after["schedule"] for event in kit.events("miss")) == ["one", "skip"]
    assert {event.after["from"] for event in kit.events("miss")} == {str(outage)}
    everything_runs(kit)
    checks(kit)
