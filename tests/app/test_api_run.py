"""Run-all and repair-all over HTTP: all of a catalogue's entries, or the ones named in the order named."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from ordering import finish, head, plans
from ordering.model import State
from tests.app.web import ok, problem, serving
from tests.ordering.acts import BROKEN, claim

CATALOGUE = """
[plans.nightly]
[[plans.nightly.items]]
key = "audit"
task = "shell"
args = { command = ["true"] }
repair = { task = "http", args = { url = "http://x" } }
[[plans.nightly.items]]
key = "lint"
title = "Lint the code"
kind = "audit"
task = "http"
args = { url = "http://x" }
[[plans.nightly.items]]
key = "once"
task = "http"
once = true
"""


@pytest.fixture
def api(engine: Engine, tmp_path: Path) -> Iterator[httpx.Client]:
    path = tmp_path / "relevo.toml"
    path.write_text(CATALOGUE)
    with serving(engine, catalogue=path) as client:
        yield client


def titles(api: httpx.Client) -> list[str]:
    return [each["title"] for each in ok(api.get("/api/plans/nightly/items"))["items"]]


def fail_next(engine: Engine) -> int:
    """Let the next item fail; its id."""
    with engine.begin() as tx:
        (fed,) = head.feed(tx, plans.get(tx, "nightly").id, serial=True)
        claimed = claim(tx, fed)
        assert finish.finish(tx, claimed, BROKEN) is State.FAILED
    return claimed.item_id


def test_all_entries_in_the_preset_order_and_none_twice(api: httpx.Client) -> None:
    assert [(each["key"], each["repair"], each["left"]) for each in ok(api.get("/api/plans/nightly/entries"))["items"]] == [
        ("audit", True, None),
        ("lint", False, None),
        ("once", False, None),
    ]
    done = ok(api.post("/api/plans/nightly/run-all"))
    assert (len(done["added"]), done["left"], done["run"]["opened"]) == (3, [], True)
    assert titles(api) == ["audit", "Lint the code", "once"]
    again = ok(api.post("/api/plans/nightly/run-all", json={}))
    assert again["added"] == []
    assert again["left"][0] == {"key": "audit", "why": "waiting"}
    assert ok(api.get("/api/plans/nightly/entries"))["items"][0]["left"] == "waiting"


def test_the_ones_named_in_the_order_named(api: httpx.Client) -> None:
    ok(api.post("/api/plans/nightly/run-all", json={"entries": ["once", "audit"]}))
    assert titles(api) == ["once", "audit"]
    refused = problem(api.post("/api/plans/nightly/run-all", json={"entries": ["nothing"]}), 422, "invalid")
    assert "it has: audit, lint, once" in refused["detail"]
    problem(api.post("/api/plans/other/run-all"), 422, "invalid")


def test_what_failed_is_repaired_and_the_plan_goes_on(api: httpx.Client, engine: Engine) -> None:
    problem(api.post("/api/plans/unheard-of/repair-all"), 404, "unknown-plan")
    assert ok(api.post("/api/plans/nightly/repair-all")) == {"repaired": [], "run": None}
    ok(api.post("/api/plans/nightly/run-all"))
    audit = fail_next(engine)
    assert problem(api.post("/api/plans/nightly/run-all"), 409, "plan-blocked")["items"][0]["id"] == audit
    assert problem(api.post("/api/plans/nightly/repair-all", json={"entries": ["x"]}), 422, "invalid")["field"] == "entries"
    assert ok(api.post("/api/plans/nightly/repair-all", json={"entries": ["lint"]}))["repaired"] == []
    (repaired,) = ok(api.post("/api/plans/nightly/repair-all", json={"entries": ["audit"]}))["repaired"]
    assert repaired["item"] == audit
    assert titles(api) == ["Repair: audit", "Lint the code", "once"]


def test_what_was_not_named_keeps_the_plan_from_starting(api: httpx.Client, engine: Engine) -> None:
    ok(api.post("/api/plans", json={"name": "nightly", "on_failure": "continue"}), 201)
    ok(api.post("/api/plans/nightly/run-all"))
    audit, lint = fail_next(engine), fail_next(engine)
    done = ok(api.post("/api/plans/nightly/repair-all", json={"entries": ["lint"]}))
    assert (done["repaired"], done["run"]) == ([{"item": lint, "by": lint}], None)
    assert ok(api.get(f"/api/items/{audit}"))["item"]["state"] == "failed"


def test_without_a_catalogue_it_says_so(engine: Engine) -> None:
    with serving(engine) as client:
        assert "The server has no catalogue" in problem(client.post("/api/plans/nightly/run-all"), 422, "invalid")["detail"]
