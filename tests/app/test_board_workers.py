"""The page of workers: who lives and what they run, who went away, and what is offered."""

import httpx
from sqlalchemy import Engine

from ordering import attempt, db, session, tasks
from ordering.model import OnInterrupt
from ordering.session import Process
from ordering.tasks import NO_LIMIT, TaskInfo
from tests.app import hostile
from tests.app.pages import cells, get, region, sound
from tests.ordering.acts import claim, feed, lose, plan, put
from tests.patience import wait_until
from tests.servers import fresh_name


def test_who_lives_and_what_they_run(api: httpx.Client, http_engine: Engine) -> None:
    name = fresh_name("flows")
    worker = fresh_name("w")
    alive = db.engine(http_engine.url.render_as_string(hide_password=False), pooled=False)
    with alive.connect() as connection:
        sessions = [session.open_(connection, Process(f"{worker}@host-a/{399 + n}", "host-a", "b", 1, 4000 + n, 9)) for n in range(2)]
        connection.commit()
        with http_engine.begin() as tx:
            plan(tx, name, concurrency=4)
            put(tx, plan=name, title=hostile.ALL)
            fed = feed(tx, name)
            assert fed
            (claimed,) = attempt.claim(tx, fed.id, session_id=sessions[0])
        page = get(api, "/workers")
        sound(page)
        hostile.harmless(page)
        said = cells(region(page, f"crew-{sessions[0]}"))
        assert f"{worker} host-a 2 workers, 1 of 2 busy" in said
        assert "process 4000 of worker 399" in said
        assert "idle process 4001 of worker 400" in said
        assert f'href="/items/{claimed.item_id}"' in region(page, f"w{sessions[0]}")
    alive.dispose()  # Postgres hears of the connection's end some time later
    wait_until(lambda: f"crew-{sessions[0]}" not in get(api, "/workers"), 30, "they are gone")


def test_who_went_away_and_what_was_left(api: httpx.Client, http_engine: Engine) -> None:
    name = fresh_name("flows")
    with http_engine.begin() as tx:
        plan(tx, name, concurrency=4)
        put(tx, plan=name, title="Day-long run", on_interrupt=OnInterrupt.HOLD)
        fed = feed(tx, name)
        assert fed
        lose(tx, claim(tx, fed))
    said = cells(region(get(api, "/workers"), "lost"))
    assert "worker process lost Day-long run Interrupted" in said
    assert name in said


def test_tasks_that_are_offered(api: httpx.Client, http_engine: Engine) -> None:
    name = fresh_name("task")
    with http_engine.begin() as tx:
        offered = [
            TaskInfo(f"{name}.a", "slow", "nightly", OnInterrupt.REQUEUE, NO_LIMIT),
            TaskInfo(f"{name}.b<b>", "relevo", None, OnInterrupt.HOLD, 5, batch=True, batch_size=50),
        ]
        tasks.register(tx, offered)
    page = get(api, "/workers")
    sound(page)
    said = cells(region(page, "tasks"))
    assert f"{name}.a slow nightly it runs again no limit" in said
    assert f"{name}.b<b> relevo a person decides 5 whole list ≤ 50" in said
