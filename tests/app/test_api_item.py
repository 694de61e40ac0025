"""One item over HTTP: every verb, and what is no item or cannot be done."""

from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from ordering import finish, head
from tests.app.test_api_items import SHELL
from tests.app.web import ok, problem
from tests.ordering.acts import BROKEN, claim
from tests.servers import fresh_name


@pytest.fixture
def line(api: httpx.Client) -> list[int]:
    """Three items of a plan of this test alone."""
    name = fresh_name("plan")
    ok(api.post("/api/plans", json={"name": name}), 201)
    many = [{**SHELL, "title": title} for title in ("one", "two", "three")]
    return [each["id"] for each in ok(api.post(f"/api/plans/{name}/items", json=many), 201)["items"]]


def plan_of(api: httpx.Client, item: int) -> str:
    return f"/api/plans/{ok(api.get(f'/api/items/{item}'))['item']['plan']}"


def order(api: httpx.Client, item: int) -> list[int]:
    return [each["id"] for each in ok(api.get(f"{plan_of(api, item)}/items"))["items"]]


def fail(api: httpx.Client, engine: Engine, item: int) -> None:
    """Start the plan and let its head fail."""
    ok(api.post(f"{plan_of(api, item)}/start"))
    with engine.begin() as tx:
        plan_id = ok(api.get(plan_of(api, item)))["id"]
        (dispatch,) = head.feed(tx, plan_id, serial=True)
    with engine.begin() as tx:
        claimed = claim(tx, dispatch)
    with engine.begin() as tx:
        finish.finish(tx, claimed, BROKEN)


def test_edit_changes_what_is_named(api: httpx.Client, line: list[int]) -> None:
    edited = ok(api.patch(f"/api/items/{line[0]}", json={"title": "new", "args": ["a"], "max_attempts": 3, "on_interrupt": "requeue"}))
    assert (edited["title"], edited["args"], edited["kwargs"], edited["max_attempts"]) == ("new", ["a"], {}, 3)
    assert ok(api.patch(f"/api/items/{line[0]}", json={"kind": "fix"}))["title"] == "new"
    for body, field in [({}, "body"), ({"titel": "x"}, "titel"), ({"args": 7}, "args"), ({"title": "\0"}, "title")]:
        assert problem(api.patch(f"/api/items/{line[0]}", json=body), 422, "invalid")["field"] == field


def test_move_says_what_was_seen(api: httpx.Client, line: list[int]) -> None:
    one, two, three = line
    ok(api.post(f"/api/items/{three}/move", json={"before": one}))
    assert order(api, one) == [three, one, two]
    stale = problem(api.post(f"/api/items/{three}/move", json={"after": one, "seen": "end"}), 409, "stale-order")
    assert stale["order"] == [three, one, two]
    ok(api.post(f"/api/items/{three}/move", json={"after": one, "seen": two}))
    ok(api.post(f"/api/items/{one}/move", json={"last": True, "seen": two}))
    assert order(api, one) == [three, two, one]
    for body, field in [
        ({}, "place"),
        ({"first": True, "after": two}, "place"),
        ({"after": 0}, "after"),
        ({"before": 2**63}, "before"),
        ({"after": "2"}, "after"),
        ({"first": True, "seen": "nothing"}, "seen"),
        ({"first": True, "seen": True}, "seen"),
    ]:
        assert problem(api.post(f"/api/items/{one}/move", json=body), 422, "invalid")["field"] == field
    problem(api.post(f"/api/items/{one}/move", json={"after": 2**62}), 409, "not-in-line")


def test_postpone_and_cancel(api: httpx.Client, line: list[int]) -> None:
    asleep = ok(api.post(f"/api/items/{line[0]}/postpone", json={"delay": 3600, "reason": "later"}))
    assert asleep["state"] == "postponed"
    ok(api.post(f"/api/items/{line[1]}/postpone", json={"until": "2030-01-31T09:00:00Z"}))
    assert ok(api.post(f"/api/items/{line[1]}/postpone", json={"delay": 0}))["state"] == "waiting"
    for body, field in [
        ({}, "until"),
        ({"delay": 1, "until": "2030-01-31T09:00:00Z"}, "until"),
        ({"delay": 10**12}, "delay"),
        ({"until": "2999-01-31T09:00:00Z"}, "until"),
        ({"until": "soon"}, "until"),
        ({"delay": 1, "reason": 5}, "reason"),
    ]:
        assert problem(api.post(f"/api/items/{line[2]}/postpone", json=body), 422, "invalid")["field"] == field
    assert ok(api.post(f"/api/items/{line[0]}/cancel", json={"reason": "no"}))["state"] == "cancelled"
    assert problem(api.post(f"/api/items/{line[0]}/cancel"), 409, "not-allowed")["state"] == "cancelled"
    problem(api.post(f"/api/items/{line[0]}/move", json={"first": True}), 409, "not-movable")


def test_the_three_decisions(api: httpx.Client, http_engine: Engine, line: list[int]) -> None:
    one, two, three = line
    fail(api, http_engine, one)
    assert ok(api.get(plan_of(api, one)))["status"] == "halted"
    blocked = problem(api.post(f"{plan_of(api, one)}/start"), 409, "plan-blocked")
    assert blocked["items"] == [{"id": one, "title": "one", "state": "failed"}]
    again = ok(api.post(f"/api/items/{one}/retry", json={"note": "again", "change": {"args": {"command": ["true", "2"]}}}))
    assert (again["state"], again["kwargs"]) == ("waiting", {"command": ["true", "2"]})
    assert problem(api.post(f"/api/items/{one}/retry"), 409, "not-allowed")["state"] == "waiting"
    fail(api, http_engine, one)
    assert ok(api.post(f"/api/items/{one}/skip"))["state"] == "skipped"
    fail(api, http_engine, two)
    assert problem(api.post(f"/api/items/{two}/resolve"), 422, "invalid")["field"] == "note"
    assert ok(api.post(f"/api/items/{two}/resolve", json={"note": "by hand"}))["state"] == "resolved"
    problem(api.post(f"/api/items/{three}/resolve", json={"note": "early"}), 409, "not-allowed")
    shown = ok(api.get(f"/api/items/{two}"))
    assert (shown["events"][-1]["actor"], shown["events"][-1]["reason"]) == ("http", "by hand")


VERBS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "", {}),
    ("PATCH", "", {"title": "x"}),
    ("POST", "/move", {"first": True}),
    ("POST", "/postpone", {"delay": 1}),
    ("POST", "/cancel", {}),
    ("POST", "/retry", {}),
    ("POST", "/skip", {}),
    ("POST", "/resolve", {"note": "x"}),
]


@pytest.mark.parametrize(("method", "path", "body"), VERBS)
def test_what_is_no_item(api: httpx.Client, method: str, path: str, body: dict[str, Any]) -> None:
    for known in (2**62, 2**63 - 1):
        problem(api.request(method, f"/api/items/{known}{path}", json=body), 404, "unknown-item")
    for item in ("0", "-1", "x", "1.5", str(2**63), "9" * 5000, "%00", "1e3", "\u0661"):
        assert problem(api.request(method, f"/api/items/{item}{path}", json=body), 422, "invalid")["field"] == "item"
    problem(api.request(method, f"/api/items/%ff{path}", json=body), 400, "bad-request")
