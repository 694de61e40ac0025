"""The list of items with steps, the search, and the page of the API."""

from datetime import timedelta
from urllib.parse import quote

import httpx
import pytest
from sqlalchemy import Engine

from ordering import steps
from ordering.decide import Asleep
from ordering.finish import finish
from ordering.model import State, StepKind
from ordering.steps import Step
from tests.app import hostile
from tests.app.pages import alert, done, get, region, sound, words
from tests.ordering.acts import plan, put, run, state
from tests.servers import fresh_name


@pytest.fixture
def flows(http_engine: Engine) -> dict[str, int]:
    """One item that sleeps and one that runs, both behind their first step."""
    name, found = fresh_name("flows"), {}
    with http_engine.begin() as tx:
        plan(tx, name, concurrency=8)
        for title in ("asleep", "running"):
            put(tx, plan=name, title=f"{title} {hostile.MARKUP}")
            claimed = run(tx, name)
            steps.record(tx, claimed, Step(1, f"create {hostile.MARKUP}", StepKind.STEP, True, "7"), took=0.5)
            if title == "asleep":
                finish(tx, claimed, Asleep(2, "trial", timedelta(days=14)))
            found[title] = claimed.item_id
    return found


def test_what_sleeps_and_until_when(api: httpx.Client, http_engine: Engine, flows: dict[str, int]) -> None:
    page = get(api, "/steps")
    sound(page)
    hostile.harmless(page)
    row = words(region(page, f"i{flows['asleep']}"))
    assert "2. trial 2 steps in 13 d 23 h" in row
    assert f'id="i{flows["running"]}"' not in page
    after = done(api, f"/items/{flows['asleep']}/wake", {"back": "/steps"})
    assert f'id="i{flows["asleep"]}"' not in after
    with http_engine.begin() as tx:
        assert state(tx, flows["asleep"]) is State.WAITING


def test_what_runs_and_behind_which_step(api: httpx.Client, flows: dict[str, int]) -> None:
    page = get(api, "/steps?state=running")
    sound(page)
    hostile.harmless(page)
    assert f"1. create {hostile.MARKUP} is behind it" in words(region(page, f"i{flows['running']}"))
    sound(get(api, "/steps?state=backing-off"))
    sound(get(api, "/steps?state=unresolved"))
    assert "use one of" in alert(get(api, "/steps?state=x", 422))
    get(api, "/steps?cursor=x", 422)


def test_an_item_is_found_by_id_key_and_title(api: httpx.Client, http_engine: Engine) -> None:
    name = fresh_name("findable")
    with http_engine.begin() as tx:
        plan(tx, name, title=hostile.MARKUP)
        first, second = [*put(tx, plan=name, title=hostile.ALL, key=f"{name}-key"), *put(tx, plan=name, title=f"{name} tail")]
    page = get(api, f"/find?q={quote(name)}")
    sound(page)
    hostile.harmless(page)
    assert f'id="i{first}"' in page
    assert f'id="i{second}"' in page
    assert name in words(region(page, "plans"))
    assert f'id="i{first}"' in get(api, f"/find?q={name}-key")
    assert 'value="nothing &lt;b&gt;"' in get(api, "/find?q=nothing+%3Cb%3E")
    answer = api.get(f"/find?q=%23{second}", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/items/{second}")
    sound(get(api, "/find"))
    get(api, "/find?q=%00", 422)


def test_the_page_of_the_api_has_every_route(api: httpx.Client) -> None:
    page = get(api, "/api")
    sound(page)
    document = api.get("/api/openapi.json").json()
    said = words(page)
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in said
    for name, schema in document["components"]["schemas"].items():
        if schema.get("properties"):
            assert f'id="schema-{name}"' in page
    assert "urn:relevo:problem:stale-order" in said
    assert "curl -X POST -H 'Content-Type: application/json' -d '{\"after\": 7, \"seen\": 8}'" in said
    assert len(page) < 300_000
    assert api.get("/api/docs", headers={"Accept": "text/html"}).headers["location"] == "/api"
