"""A run on the board: start with a policy, change it, pause; the dialogs of run-all and repair-all; each refusal."""

from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from ordering import plans
from ordering.decide import Failed
from ordering.model import OnFailure, State
from tests.app.boards import Line
from tests.app.pages import alert, done, get, refused, region, sound, words
from tests.app.web import serving
from tests.ordering import acts
from tests.servers import fresh_name

CATALOGUE = """
[plans.NAME]
[[plans.NAME.items]]
key = "one"
title = "First & <only>"
kind = "audit"
task = "http"
args = { url = "http://127.0.0.1:1/" }
order = 1
[[plans.NAME.items]]
key = "two"
task = "shell"
args = { command = ["true"] }
order = 2
repair = { task = "http", args = { url = "http://127.0.0.1:1/repair" } }
[[plans.NAME.items]]
key = "three"
task = "http"
args = { url = "http://127.0.0.1:1/" }
order = 3
"""


def policy(engine: Engine, name: str) -> str | None:
    with engine.begin() as tx:
        row = tx.execute(plans.CURRENT_RUN, {"plan_id": plans.get(tx, name).id}).one_or_none()
        return None if row is None else str(row.on_failure)


def test_start_pause_and_the_policy_between(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine)
    page = get(api, line.path)
    assert "Never started" in words(region(page, "page-head"))
    assert "No run is open" in words(region(page, "barrier"))
    started = done(api, f"{line.path}/start", {"on_failure": "continue", "back": line.path})
    assert policy(http_engine, line.name) == "continue"
    assert "Started the plan" in words(region(started, "undo"))
    assert 'value="continue" aria-pressed="true"' in region(started, "policy")
    halting = done(api, f"{line.path}/policy", {"on_failure": "halt", "back": line.path})
    assert policy(http_engine, line.name) == "halt"
    assert 'value="halt" aria-pressed="true"' in region(halting, "policy")
    line.run()
    paused = done(api, f"{line.path}/pause", {"reason": "the mirror is down", "back": line.path})
    assert policy(http_engine, line.name) is None
    assert "The head goes on to its end" in words(region(paused, "barrier"))
    sound(paused)


def test_the_policy_changes_while_something_is_unresolved_and_releases_nothing(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True)
    line.fail()
    done(api, f"{line.path}/policy", {"on_failure": "continue", "back": line.path})
    assert policy(http_engine, line.name) == "continue"
    assert line.item(1).at_head


def test_what_a_run_is_refused(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, start=True)
    assert alert(refused(api, f"{line.path}/policy", {"back": line.path}, 422)).startswith("on_failure:")
    assert alert(refused(api, f"{line.path}/policy", {"on_failure": "stop", "back": line.path}, 422)).startswith("on_failure:")
    line.fail()
    done(api, f"{line.path}/pause", {"back": line.path})
    again = refused(api, f"{line.path}/pause", {"back": line.path}, 409)
    assert "is not running" in alert(again)
    assert "A run starts once every unresolved item is decided." in words(region(again, "policy"))
    blocked = refused(api, f"{line.path}/start", {"back": line.path}, 409)
    assert "has unresolved items" in alert(blocked)
    assert "is not running" in alert(refused(api, f"{line.path}/policy", {"on_failure": "halt", "back": line.path}, 409))


def test_a_plan_that_is_not_there(api: httpx.Client) -> None:
    fields = {"on_failure": "halt", "item": "1", "place": "first", "task": "http"}
    for verb in ("start", "pause", "policy", "move", "items", "repair-all"):
        page = refused(api, f"/plans/nowhere/{verb}", fields, 404)
        assert "There is no plan" in alert(page)
        sound(page)
    assert refused(api, "/plans/%00/start", {}, 404)


@pytest.fixture
def catalogued(http_engine: Engine, tmp_path: Path):  # type: ignore[no-untyped-def]
    name = fresh_name("plan")
    file = tmp_path / "relevo.toml"
    file.write_text(CATALOGUE.replace("NAME", name))
    with http_engine.begin() as tx:
        plans.create(tx, name, actor="x")
    with serving(http_engine, catalogue=file) as client:
        yield client, name, file


def titles(engine: Engine, name: str) -> list[str]:
    from sqlalchemy import text

    with engine.begin() as tx:
        ids = acts.order(tx, name)
        rows = tx.execute(text("select id, title from relevo.item where id = any(:ids)"), {"ids": ids})
        found = {row.id: row.title for row in rows}
        return [found[each] for each in ids]


def test_run_all_in_the_order_of_the_numbers(catalogued, http_engine: Engine) -> None:  # type: ignore[no-untyped-def]
    client, name, _file = catalogued
    path = f"/plans/{name}"
    dialog = region(get(client, f"{path}?ask=run-all"), "ask")
    assert words(dialog).index("First & <only>") < words(dialog).index("two") < words(dialog).index("three")
    assert dialog.count(" checked") == 3
    fields = [
        ("entry", "one"),
        ("entry", "three"),
        ("order:1", "9"),
        ("order:2", "1"),
        ("order:3", "4"),
        ("back", path),
        ("ask", "run-all"),
    ]
    done(client, f"{path}/run-all", fields)
    assert titles(http_engine, name) == ["three", "First & <only>"]
    again = region(get(client, f"{path}?ask=run-all"), "ask")
    assert "2 are left alone" in words(again)
    assert again.count(" disabled") == 4
    assert policy(http_engine, name) == "halt"


def test_what_run_all_refuses(catalogued, http_engine: Engine) -> None:  # type: ignore[no-untyped-def]
    client, name, file = catalogued
    path, ask = f"/plans/{name}", {"back": f"/plans/{name}", "ask": "run-all"}
    none = refused(client, f"{path}/run-all", ask, 422)
    assert alert(none).startswith("entry:")
    assert "First & <only>" in words(region(none, "ask"))
    wrong = refused(client, f"{path}/run-all", {**ask, "entry": "one", "order:1": "x"}, 422)
    assert alert(wrong).startswith("order:1:")
    assert 'value="x"' in region(wrong, "ask")
    assert "no 'gone' any more" in alert(refused(client, f"{path}/run-all", {**ask, "entry": "gone"}, 422))
    file.write_text("nonsense [")
    broken = get(client, f"{path}?ask=run-all")
    assert "is not TOML" in words(region(broken, "ask"))
    assert "is not TOML" in alert(refused(client, f"{path}/run-all", {**ask, "entry": "one"}, 422))
    file.unlink()
    assert "no catalogue" in words(region(get(client, f"{path}?ask=run-all"), "ask"))
    assert titles(http_engine, name) == []


def test_repair_all(catalogued, http_engine: Engine) -> None:  # type: ignore[no-untyped-def]
    client, name, _file = catalogued
    path = f"/plans/{name}"
    done(client, f"{path}/run-all", [("entry", "two"), ("entry", "three"), ("back", path)])
    with http_engine.begin() as tx:
        broken = acts.end(tx, Failed("E", "E: no"), name)
    page = get(client, f"{path}?ask=repair-all")
    assert "its repair runs: http" in words(region(page, "ask"))
    done(client, f"{path}/repair-all", {"back": path})
    assert titles(http_engine, name)[0] == "Repair: two"
    with http_engine.begin() as tx:
        assert acts.state(tx, broken) is State.RESOLVED
    assert "Nothing is unresolved" in words(region(get(client, f"{path}?ask=repair-all"), "ask"))


def test_the_policy_of_a_plan_is_chosen_before_it_starts(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, on_failure=OnFailure.CONTINUE)
    assert 'value="continue" checked' in region(get(api, line.path), "policy")
    stream = Line(http_engine, concurrency=4)
    page = get(api, stream.path)
    assert 'id="policy"' not in page
    assert "Nothing is out." in words(region(page, "out-now"))
