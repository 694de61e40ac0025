"""Services that go on whatever bodies, people and strangers do."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from ordering import items
from ordering.model import State
from tests.cases.kit import ACTOR, Kit, wait_until


def test_a_body_that_ignores_its_stop_takes_no_innocent_one_along(up: Kit, line: str) -> None:
    beside = f"{line}-beside"
    up.plan(beside)
    occupant = up.add(beside, "probe.nap", 300)  # of the other slot: what follows can only run in the stubborn one's place
    up.wait_start(occupant)
    stubborn, following = up.add(line, "heart.stubborn"), up.add(line, "probe.nap", 7)
    up.wait_start(stubborn)
    with up.tx() as tx:
        items.cancel(tx, stubborn, actor=ACTOR)
    up.wait_state(following, State.SUCCEEDED, seconds=60)
    assert up.starts(following)[0].pid != up.starts(stubborn)[0].pid
    assert up.outcomes(following) == ["succeeded"]
    with up.tx() as tx:
        items.cancel(tx, occupant, actor=ACTOR)


def test_a_plan_that_somebody_holds_starves_no_other(up: Kit, line: str) -> None:
    other = f"{line}-other"
    up.plan(other)
    held = up.add(line, "probe.nap", delay=timedelta(hours=2))
    with up.psql() as holder:
        holder.execute("select from relevo.plan where name = %s for update", (line,))
        up.sql("update relevo.item set not_before = now() where id = :held", held=held)
        wait_until(lambda: up.waiting("relevo feeder"), 15, "the feeder waits for the plan whose item is due")
        up.wait_state(up.add(other, "probe.nap"), State.SUCCEEDED)
        assert up.state(held) is State.WAITING
        holder.rollback()
    up.wait_state(held, State.SUCCEEDED)


def test_a_stranger_s_notification_harms_nobody(up: Kit, line: str) -> None:
    url = make_url(up.database_url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as stranger:
        for payload in ("", "x", "-1", "1e3", "9" * 30):
            stranger.execute("select pg_notify('relevo_feed', %s), pg_notify('relevo_stop', %s)", (payload, payload))
    up.wait_state(up.add(line, "probe.nap"), State.SUCCEEDED)
    assert "Traceback" not in up.logs()


SESSIONS = "relevo session%"
LONGER = 4.0  # seconds, than the limit of `heart.limited`
SLOW_CLAIM = """
    create function public.slow_claim() returns trigger language plpgsql as $$ begin
        perform pg_advisory_xact_lock(4242);
        return new;
    end $$;
    create trigger slow_claim before update on relevo.dispatch for each row
        when (old.claimed_at is null and new.claimed_at is not null) execute function public.slow_claim()
"""


@contextmanager
def claim_held(up: Kit, line: str, task: str) -> Iterator[int]:
    """An item of the task, whose claim waits until the block ends; then, it runs."""
    with up.psql() as holder:
        holder.execute("select pg_advisory_lock(4242)")
        holder.commit()
        up.sql(SLOW_CLAIM)
        try:
            item = up.add(line, task)
            wait_until(lambda: up.waiting(SESSIONS) == 1, 15, "the claim waits")
            yield item
            holder.execute("select pg_advisory_unlock(4242)")
            holder.commit()
            up.wait_start(item)
        finally:
            holder.close()
            up.sql("drop function public.slow_claim cascade")


@pytest.mark.parametrize("task", ["heart.limited", "heart.limited_softly"])
def test_a_time_limit_counts_no_wait_for_the_claim(up: Kit, line: str, task: str) -> None:
    with claim_held(up, line, task) as item:
        time.sleep(LONGER)
    up.wait_state(item, State.SUCCEEDED, State.FAILED, State.INTERRUPTED)
    assert up.outcomes(item) == ["succeeded"]


def test_a_time_limit_counts_no_wait_for_the_record_of_the_end(up: Kit, line: str) -> None:
    with up.psql() as holder:
        with claim_held(up, line, "heart.limited") as item:  # or its body of 0.2 s might end before the plan is held
            holder.execute("select from relevo.plan where name = %s for update", (line,))
        wait_until(lambda: up.ends(item), 15, "the body ends")
        time.sleep(LONGER)
        assert up.waiting(SESSIONS) == 1
        holder.rollback()
    up.wait_state(item, State.SUCCEEDED, State.FAILED)
    assert up.outcomes(item) == ["succeeded"]


def test_a_stop_that_comes_while_the_end_is_recorded_waits_for_it(up: Kit, line: str) -> None:
    release = up.folder / line
    with up.psql() as holder:
        item = up.add(line, "probe.wait_for", str(release))
        start = up.wait_start(item)
        holder.execute("select from relevo.plan where name = %s for update", (line,))
        release.touch()
        wait_until(lambda: up.waiting(SESSIONS) == 1, 15, "the end is being recorded")
        os.kill(start.pid, signal.SIGTERM)
        wait_until(lambda: not pending(start.pid), 15, "the signal has arrived")
        holder.rollback()
    up.wait_state(item, State.SUCCEEDED, State.INTERRUPTED)
    assert up.outcomes(item) == ["succeeded"]


def pending(pid: int) -> bool:
    """Whether TERM has not reached the process yet."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
    (mask,) = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith("ShdPnd"))
    return bool(mask & 1 << (signal.SIGTERM - 1))
