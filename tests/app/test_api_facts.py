"""Facts over HTTP."""

import json
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from ordering import subscriptions
from ordering.subscriptions import Subscription
from tests.app.web import ok, problem
from tests.servers import fresh_name


@pytest.fixture
def heard(http_engine: Engine) -> str:
    """A type of facts that two tasks hear."""
    type = fresh_name("invoice.issued")
    with http_engine.begin() as tx:
        for task in ("demo.draw", "demo.notify"):
            subscriptions.subscribe(tx, Subscription(type, task, "facts-heard"), actor="test")
    return type


def test_a_fact_becomes_an_item_for_each_subscription(api: httpx.Client, heard: str) -> None:
    told = ok(api.post("/api/facts", json={"type": heard, "data": {"invoice": 4711}, "key": "4711"}), 201)
    assert (told["heard"], told["new"]) == (2, True)
    again = ok(api.post("/api/facts", json={"type": heard, "data": {"invoice": 4711}, "key": "4711"}))
    assert again == {**told, "new": False}
    assert (
        problem(api.post("/api/facts", json={"type": heard, "data": {"invoice": 1}, "key": "4711"}), 409, "key-conflict")["field"] == "key"
    )
    shown = ok(api.get(f"/api/facts/{told['id']}"))
    assert sorted(each["task"] for each in shown["items"]) == ["demo.draw", "demo.notify"]
    assert shown["data"] == {"invoice": 4711}
    listed = ok(api.get("/api/facts", params={"type": heard}))
    assert [each["id"] for each in listed["items"]] == [told["id"]]
    assert {each["task"] for each in ok(api.get("/api/subscriptions"))["items"]} >= {"demo.draw", "demo.notify"}


def test_the_same_call_again_is_the_same_fact(api: httpx.Client, heard: str) -> None:
    call: dict[str, Any] = {"json": {"type": heard, "data": [1]}, "headers": {"Idempotency-Key": heard}}
    first = ok(api.post("/api/facts", **call), 201)
    assert ok(api.post("/api/facts", **call), 201) == first
    assert len(ok(api.get("/api/facts", params={"type": heard}))["items"]) == 1


def test_unheard_facts_are_kept_and_listed_by_page(api: httpx.Client) -> None:
    type = fresh_name("nobody.hears")
    ids = [ok(api.post("/api/facts", json={"type": type}), 201)["id"] for _ in range(5)]
    first = ok(api.get("/api/facts", params={"type": type, "unheard": "true", "limit": 3}))
    rest = ok(api.get("/api/facts", params={"type": type, "unheard": "true", "cursor": first["next"]}))
    assert [each["id"] for each in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "type"),
        ({"type": ""}, "type"),
        ({"type": "two words"}, "type"),
        ({"type": "nul\0"}, "type"),
        ({"type": "x" * 201}, "type"),
        ({"type": 7}, "type"),
        ({"type": "a", "data": "nul\0"}, "data"),
        ({"type": "a", "data": {"\ud800": 1}}, "data"),
        ({"type": "a", "data": ["x" * 1_000_001]}, "data"),
        ({"type": "a", "key": ""}, "key"),
        ({"type": "a", "key": "\0"}, "key"),
        ({"type": "a", "key": "x" * 501}, "key"),
        ({"type": "a", "date": 1}, "date"),
    ],
)
def test_what_cannot_be_accepted_is_named(api: httpx.Client, body: Any, field: str) -> None:
    assert problem(api.post("/api/facts", content=json.dumps(body)), 422, "invalid")["field"] == field


def test_what_is_too_large_or_too_deep_or_not_there(api: httpx.Client) -> None:
    problem(api.post("/api/facts", json={"type": "a", "data": "x" * 10_000_000}), 413, "too-large")
    problem(api.post("/api/facts", content='{"type": "a", "data": ' + "[" * 500 + "]" * 500 + "}"), 422, "invalid")
    problem(api.get(f"/api/facts/{2**62}"), 404, "unknown-fact")
    assert problem(api.get(f"/api/facts/{2**63}"), 422, "invalid")["field"] == "fact"
    for query in ("cursor=x", "cursor=0", f"cursor={2**63}", "cursor=%00", "limit=501", "type=%00", "type=a%20b", "unheard=perhaps"):
        assert problem(api.get(f"/api/facts?{query}"), 422, "invalid")["field"] == query.partition("=")[0]
