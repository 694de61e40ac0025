"""Plans over HTTP."""

import httpx
import pytest

from tests.app.web import ok, problem


def test_a_plan_is_created_shown_started_and_paused(api: httpx.Client) -> None:
    made = ok(api.post("/api/plans", json={"name": "nightly", "title": "Every night", "on_failure": "continue", "stop_grace": 30}), 201)
    assert (made["name"], made["status"], made["on_failure"]) == ("nightly", "new", "continue")
    assert ok(api.get("/api/plans/nightly")) == made
    started = ok(api.post("/api/plans/nightly/start"))
    assert (started["on_failure"], started["opened"]) == ("continue", True)
    changed = ok(api.post("/api/plans/nightly/start", json={"on_failure": "halt"}))
    assert (changed["id"], changed["on_failure"], changed["opened"]) == (started["id"], "halt", False)
    assert ok(api.post("/api/plans/nightly/pause", json={"reason": "for the night"}))["status"] == "paused"
    problem(api.post("/api/plans/nightly/pause"), 409, "not-started")


def test_a_plan_is_edited(api: httpx.Client) -> None:
    made = ok(api.post("/api/plans", json={"name": "edited", "concurrency": 4, "max_attempts": 3, "rate": "10/s"}), 201)
    changed = ok(api.patch("/api/plans/edited", json={"title": "New", "rate": "none", "keep": 60}))
    assert changed == {**made, "title": "New", "rate": None, "keep": 60.0}
    assert ok(api.patch("/api/plans/edited", json={"max_attempts": None}))["max_attempts"] is None
    assert ok(api.patch("/api/plans/edited", json={"concurrency": 16}))["concurrency"] == 16
    for body, field in [({}, "body"), ({"concurrency": 1}, "concurrency"), ({"title": "\0"}, "title"), ({"keep": 0}, "keep")]:
        assert problem(api.patch("/api/plans/edited", json=body), 422, "invalid")["field"] == field


def test_plans_are_paged_by_name_and_found_by_text(api: httpx.Client) -> None:
    names = [f"plan-{number}" for number in range(7)]
    for name in reversed(names):
        ok(api.post("/api/plans", json={"name": name, "title": f"Title of {name}"}), 201)
    seen, cursor = list[str](), None
    for _ in range(3):
        page = ok(api.get("/api/plans", params={"limit": 3, "text": "title of", **({"cursor": cursor} if cursor else {})}))
        seen += [each["name"] for each in page["items"]]
        cursor = page["next"]
    assert (seen, cursor) == (names, None)
    assert [each["name"] for each in ok(api.get("/api/plans", params={"text": "OF PLAN-3"}))["items"]] == ["plan-3"]


def test_what_is_not_there_or_there_already_says_so(api: httpx.Client) -> None:
    ok(api.post("/api/plans", json={"name": "twice"}), 201)
    assert "twice" in problem(api.post("/api/plans", json={"name": "twice"}), 409, "plan-exists")["detail"]
    for name in ("other", "OTHER", "a%00b", "é", "x" * 300):
        for path in ("", "/items"):
            problem(api.get(f"/api/plans/{name}{path}"), 404, "unknown-plan")
        problem(api.post(f"/api/plans/{name}/start"), 404, "unknown-plan")
    problem(api.get("/api/nothing"), 404, "not-found")
    problem(api.delete("/api/plans/nightly"), 405, "method-not-allowed")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "Nightly"}, "name"),
        ({"name": "nul\0"}, "name"),
        ({"name": 7}, "name"),
        ({"name": "a", "title": "nul \0"}, "title"),
        ({"name": "a", "title": "\u200b"}, "title"),
        ({"name": "a", "title": "x" * 501}, "title"),
        ({"name": "a", "concurrency": 0}, "concurrency"),
        ({"name": "a", "concurrency": 10**30}, "concurrency"),
        ({"name": "a", "concurrency": True}, "concurrency"),
        ({"name": "a", "concurrency": "3"}, "concurrency"),
        ({"name": "a", "max_attempts": 10**9}, "max_attempts"),
        ({"name": "a", "on_failure": "explode"}, "on_failure"),
        ({"name": "a", "autostart": "yes"}, "autostart"),
        ({"name": "a", "stop_grace": 10**12}, "stop_grace"),
        ({"name": "a", "stop_grace": -1}, "stop_grace"),
        ({"name": "a", "keep": 0}, "keep"),
        ({"name": "a", "rate": "fast"}, "rate"),
        ({"name": "a", "rate": 5}, "rate"),
        ({"name": "a", "rate": "5/s"}, "rate"),
        ({"name": "a", "colour": "blue"}, "colour"),
        ([], "body"),
        ("nightly", "body"),
        (None, "name"),
    ],
)
def test_what_cannot_be_accepted_is_named(api: httpx.Client, body: object, field: str) -> None:
    told = problem(api.post("/api/plans", json=body), 422, "invalid")
    assert told["field"] == field
    assert told["detail"].startswith(f"{field}: ")
    problem(api.get("/api/plans/a"), 404, "unknown-plan")


def test_pages_that_cannot_be(api: httpx.Client) -> None:
    for query in ("limit=0", "limit=501", "limit=x", f"limit={'9' * 5000}", "cursor=%00", f"cursor={'x' * 201}", "text=%00"):
        told = problem(api.get(f"/api/plans?{query}"), 422, "invalid")
        assert told["field"] == query.partition("=")[0]
