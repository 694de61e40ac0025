"""Services that go on whatever bodies, people and strangers do."""

from datetime import timedelta

import psycopg
from sqlalchemy import make_url

from ordering import items
from ordering.model import State
from tests.cases.kit import ACTOR, Kit, wait_until


def test_a_body_that_ignores_its_stop_takes_no_innocent_one_along(up: Kit, line: str) -> None:
    beside = f"{line}-beside"
    up.plan(beside)
    occupant = up.add(beside, "probe.nap", 60)  # of the other slot: what follows can only run in the stubborn one's place
    up.wait_start(occupant)
    stubborn, following = up.add(line, "heart.stubborn"), up.add(line, "probe.nap", 7)
    up.wait_start(stubborn)
    with up.tx() as tx:
        items.cancel(tx, stubborn, actor=ACTOR)
    up.wait_state(following, State.SUCCEEDED, seconds=30)
    assert up.starts(following)[0].pid != up.starts(stubborn)[0].pid
    assert up.outcomes(following) == ["succeeded"]
    with up.tx() as tx:
        items.cancel(tx, occupant, actor=ACTOR)


def test_a_plan_that_somebody_holds_starves_no_other(up: Kit, line: str) -> None:
    other = f"{line}-other"
    up.plan(other)
    held = up.add(line, "probe.nap", delay=timedelta(seconds=2))
    with up.psql() as holder:
        holder.execute("select from relevo.plan where name = %s for update", (line,))
        waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and application_name = 'relevo feeder'"
        wait_until(lambda: up.sql(waiting)[0][0], 8, "the feeder waits for the plan whose item is due")
        up.wait_state(up.add(other, "probe.nap"), State.SUCCEEDED, seconds=8)
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
