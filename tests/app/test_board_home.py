"""The overview: what waits for a person, a card per plan, pages of many plans, a new plan, run-all and repair-all of several."""

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from app import web
from ordering import db, plans
from ordering.model import OnFailure, State
from tests import servers
from tests.app.boards import Line
from tests.app.pages import alert, done, get, refused, region, sound, words
from tests.app.web import serving
from tests.ordering import acts
from tests.patience import wait_until


@pytest.fixture
def empty(server_url: str, template: str) -> Iterator[Engine]:
    """A database without any plan."""
    with servers.database(server_url, template) as url:
        made = db.engine(url, settings=web.SESSION)
        yield made
        servers.close(made)


def test_nothing_is_there_and_then_a_plan(empty: Engine) -> None:
    with serving(empty) as client:
        page = get(client, "/")
        sound(page)
        assert "No plans yet" in words(region(page, "plans"))
        assert 'id="needs"' not in page
        dialog = region(get(client, "/?ask=new-plan"), "ask")
        assert 'name="name"' in dialog
        made = done(
            client, "/plans", {"name": "nightly", "title": "Every <night>", "on_failure": "continue", "ask": "new-plan", "back": "/"}
        )
        assert "Every <night>" in words(region(made, "page-head"))
        assert "Created the plan nightly" in words(region(made, "undo"))
        card = words(region(get(client, "/"), "p1"))
        assert "Every <night>" in card
        assert "Never started" in card
        assert "on failure continue" in card
        assert "Nothing waits" in card
        assert words(region(get(client, "/plans/nightly"), "items")).count("Nothing waits") == 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": ""}, "name: is empty"),
        ({"name": "No Caps"}, "plan: 'No Caps' is not a plan name"),
        ({"name": "ok", "concurrency": "0"}, "concurrency:"),
        ({"name": "ok", "concurrency": "many"}, "concurrency:"),
        ({"name": "ok", "on_failure": "cry"}, "on_failure:"),
        ({"name": "ok", "title": "x" * 501}, "title: has 501 characters"),
    ],
)
def test_a_refused_plan_keeps_what_was_written(api: httpx.Client, fields: dict[str, str], sentence: str) -> None:
    page = refused(api, "/plans", {"title": "kept", **fields, "ask": "new-plan", "back": "/"}, 422)
    assert alert(page).startswith(sentence)
    dialog = region(page, "ask")
    assert f'value="{fields["name"]}"' in dialog
    assert 'value="kept"' in dialog or "title" in fields


def test_the_name_is_taken(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, 1)
    assert "already" in alert(refused(api, "/plans", {"name": line.name, "ask": "new-plan", "back": "/"}, 409))


def test_what_waits_for_a_person_stands_first(empty: Engine) -> None:
    goes_on = Line(empty, ["let it pass", "behind"], start=True, on_failure=OnFailure.CONTINUE, title="Goes on")
    goes_on.fail()
    held = Line(empty, ["<held>", "two", "three"], start=True, title="Held up")
    held.lose()
    stopped = Line(empty, ["alone"], start=True, on_failure=OnFailure.CONTINUE, title="Stopped")
    stopped.fail()
    with empty.begin() as tx:
        plans.pause(tx, stopped.name, actor="x")
    stream = Line(empty, 1, concurrency=2, title="Stream of <mails>")
    stream.fail()
    with serving(empty) as client:
        page = get(client, "/")
        sound(page)
        listed = region(page, "needs")
        told = words(listed)
        assert told.startswith("Waiting for a person4")
        assert told.index("<held>") < told.index("let it pass") < told.index("alone") < told.index("1 dead letter")
        assert "holds 2 items" in told
        assert "the plan goes on" in told
        assert "no run can start" in told
        assert "the stream goes on" in told
        assert f'href="/plans/{held.name}#decide"' in listed
        assert f'href="/dead-letters?plan={stream.name}"' in listed
        card = region(page, f"p{held.id}")
        assert "Halted" in words(card)
        assert "Held until somebody decides" in words(card)
        for verb in ("retry", "skip"):
            assert f'action="/items/{held.id_of(1)}/{verb}"' in card
        done(client, f"/items/{held.id_of(1)}/skip", {"back": "/"})
        assert "<held>" not in words(region(get(client, "/"), "needs"))


def test_many_plans_come_in_pages(empty: Engine) -> None:
    with empty.begin() as tx:
        for number in range(30):
            plans.create(tx, f"plan-{number:02d}", actor="x")
    with serving(empty) as client:
        first = get(client, "/")
        assert 'href="/plans/plan-23"' in region(first, "plans")
        assert 'href="/plans/plan-24"' not in region(first, "plans")
        second = get(client, "/?after=plan-23")
        assert 'href="/plans/plan-29"' in region(second, "plans")
        assert "More plans" not in second

        def signals() -> str:  # read beside the pages: one that is asked for before they are there has none
            page = get(client, "/")
            return words(region(page, "signals")) if 'id="signals"' in page else ""

        wait_until(lambda: "30 plans" in signals(), 30, "the figures of all plans")
        found = get(client, "/?text=plan-17")
        assert region(found, "plans").count("<article") == 1
        assert "No plan here" in get(client, "/?text=nothing+like+that")
        get(client, "/?text=%00", 422)


def test_a_row_of_a_card_moves(api: httpx.Client, http_engine: Engine) -> None:
    line = Line(http_engine, 3)
    row = region(get(api, f"/?text={line.name}"), f"a{line.id_of(2)}")
    assert f'value="before {line.id_of(1)} end"' in row
    done(api, f"/items/{line.id_of(2)}/move", {"to": f"before {line.id_of(1)} end", "back": "/"})
    assert line.places() == [2, 1, 3]


def test_run_all_and_repair_all_of_several(http_engine: Engine, tmp_path: Path) -> None:
    names = [servers.fresh_name("plan") for _ in range(3)]
    entry = '[[plans.{0}.items]]\nkey = "a"\ntask = "http"\nargs = {{ url = "http://127.0.0.1:1/" }}\nmax_attempts = 1\n'
    file = tmp_path / "relevo.toml"
    file.write_text("\n".join(entry.format(name) for name in names))
    with serving(http_engine, catalogue=file) as client:
        assert "1 entry" in words(region(get(client, "/?ask=run-all"), "ask"))
        done(client, "/run-all", [("plan", names[0]), ("plan", names[1]), ("back", "/")])
        assert words(region(get(client, f"/plans/{names[0]}"), "counts")).startswith("1 waiting")
        get(client, f"/plans/{names[2]}", 404)
        nothing = refused(client, "/run-all", {"back": "/", "ask": "run-all"}, 422)
        assert alert(nothing).startswith("plan: is missing")
        assert "no plan 'gone'" in alert(refused(client, "/run-all", [("plan", names[2]), ("plan", "gone"), ("back", "/")], 422))
        get(client, f"/plans/{names[2]}", 404)  # all or none
        line = Line.__new__(Line)
        line.engine, line.name = http_engine, names[0]
        broken = line.fail()
        assert names[0] in region(get(client, "/?ask=repair-all"), "ask")
        assert f'value="{names[0]}" disabled' in region(get(client, "/?ask=run-all"), "ask")
        done(client, "/repair-all", {"plan": names[0], "back": "/"})
        with http_engine.begin() as tx:
            assert acts.state(tx, broken) is State.WAITING


def test_a_moment_without_threads_costs_a_page_its_figures_alone(empty: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    start, refused = threading.Thread.start, list[str]()

    def starting(thread: threading.Thread) -> None:
        if thread.name == "figures" and not refused:
            refused.append(thread.name)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starting)
    with serving(empty) as client:
        assert 'id="signals"' not in get(client, "/")
        assert refused
        wait_until(lambda: 'id="signals"' in get(client, "/"), 30, "the figures are there")
