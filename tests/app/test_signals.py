"""`relevo signals`, `relevo workers`, and the same over HTTP."""

import httpx
from sqlalchemy import Engine

from app import api_signals
from ordering import reconcile, session
from ordering import signals as reading
from ordering import workforce as reading_workforce
from tests.app.commands import Relevo, objects, ok
from tests.app.web import ok as answered
from tests.ordering.acts import BROKEN, PROCESS, end, plan, put, run
from tests.servers import fresh_name


def test_signals_are_a_line_for_each_plan(line: Relevo, engine: Engine) -> None:
    ok(line("plan", "create", "empty"))
    ok(line("start", "line"))
    with engine.begin() as tx:
        end(tx, BROKEN)
    empty, found = objects(line("signals", "--json"))
    assert (found["plan"], found["depth"], found["dead_letters"], found["items"]["failed"]) == ("line", 2, 1, 1)
    assert found["blocked"] >= 0
    assert found["oldest_age"] > 0
    assert (empty["plan"], empty["depth"], empty["oldest_age"], empty["retry_ratio"]) == ("empty", 0, 0, 0)
    said = ok(line("signals")).splitlines()
    assert said[0].split() == ["PLAN", "DEPTH", "OLDEST", "RETRIES", "DEAD", "BLOCKED", "HANDED", "OUT", "RUNNING"]
    assert said[1].split() == ["empty", "0", "-", "0%", "0", "-", "-", "-"]
    assert said[2].split()[:2] == ["line", "2"]


def test_workers_are_shown_with_what_they_run_and_left(line: Relevo, engine: Engine) -> None:
    assert ok(line("workers")) == "Nobody works: no pool process is alive.\n"
    ok(line("start", "line"))
    with engine.connect() as process:
        with process.begin():
            session.open_(process, PROCESS)
        with engine.begin() as tx:
            run(tx)
        reconcile.reconcile(engine, lambda _: False)
        living, lost = objects(line("workers", "--json"))
        assert (living["type"], living["pid"], living["runs"], living["items"]) == ("worker", PROCESS.pid, 0, [])
        assert (lost["type"], lost["reason"]) == ("lost", "process lost")
        assert [(each["id"], each["title"], each["state"]) for each in lost["items"]] == [(1, "one", "interrupted")]
        said = ok(line("workers"))
        assert "1 line: one (interrupted" in said
        process.invalidate()


def test_signals_and_workers_over_http(api: httpx.Client, http_engine: Engine) -> None:
    name = fresh_name("plan")
    with http_engine.begin() as tx:
        plan(tx, name)
        put(tx, 2, plan=name)
    (found,) = [each for each in answered(api.get("/api/signals"))["items"] if each["plan"] == name]
    assert (found["depth"], found["dead_letters"], found["items"]["waiting"]) == (2, 0, 2)
    told = answered(api.get("/api/workers"))
    assert (told["workers"], told["lost"], told["tasks"]) == ([], [], [])


def test_the_examples_have_the_fields_of_the_answers() -> None:
    assert set(api_signals.EXAMPLE_SIGNALS) == set(reading.Signals.__dataclass_fields__)
    assert set(api_signals.EXAMPLE_WORKFORCE) == set(reading_workforce.Workforce.__dataclass_fields__)
    for name, made in (("workers", reading_workforce.Worker), ("lost", reading_workforce.Lost), ("tasks", reading_workforce.Offered)):
        (example,) = api_signals.EXAMPLE_WORKFORCE[name]
        assert set(example) == set(made.__dataclass_fields__)
    assert set(api_signals.EXAMPLE_ITEM) == set(reading_workforce.Work.__dataclass_fields__)
