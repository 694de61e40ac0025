"""Dead letters over HTTP."""

from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from app import api_dead
from tests.app.web import ok, problem
from tests.ordering.letters import die, stream
from tests.servers import fresh_name


@pytest.fixture
def letters(api: httpx.Client, http_engine: Engine) -> list[int]:
    """Five dead letters of a stream of this test alone."""
    name = fresh_name("stream")
    with http_engine.begin() as tx:
        stream(tx, name)
        return die(tx, ["Refused: no"] * 5, plan=name)


def stream_of(api: httpx.Client, item: int) -> str:
    plan: str = ok(api.get(f"/api/items/{item}"))["item"]["plan"]
    return plan


def test_they_are_listed_by_page_and_grouped_by_cause(api: httpx.Client, letters: list[int]) -> None:
    plan = stream_of(api, letters[0])
    first = ok(api.get("/api/dead-letters", params={"plan": plan, "limit": 3}))
    rest = ok(api.get("/api/dead-letters", params={"plan": plan, "cursor": first["next"]}))
    assert [each["id"] for each in first["items"] + rest["items"]] == letters
    assert rest["next"] is None
    (group,) = ok(api.get("/api/dead-letters/groups", params={"plan": plan}))["items"]
    assert (group["count"], group["group"]) == (5, first["items"][0]["group"])
    assert len(ok(api.get("/api/dead-letters", params={"group": group["group"], "plan": plan}))["items"]) == 5


def test_named_ones_are_decided_all_or_none(api: httpx.Client, letters: list[int]) -> None:
    assert ok(api.post("/api/dead-letters/retry", json={"items": letters[:2], "note": "again"}))["items"] == letters[:2]
    problem(api.post("/api/dead-letters/retry", json={"items": letters[:3]}), 409, "not-dead")
    problem(api.post("/api/dead-letters/skip", json={"items": [2**62]}), 404, "unknown-item")
    assert ok(api.post("/api/dead-letters/skip", json={"items": [letters[2]]}))["items"] == [letters[2]]
    assert ok(api.post("/api/dead-letters/resolve", json={"items": [letters[3]], "note": "by hand"}))["items"] == [letters[3]]
    assert [ok(api.get(f"/api/items/{each}"))["item"]["state"] for each in letters] == ["waiting"] * 2 + ["skipped", "resolved", "failed"]
    again = ok(api.post(f"/api/items/{letters[4]}/retry", json={"change": {"args": ["edited"]}}))
    assert (again["state"], again["args"]) == ("waiting", ["edited"])


def test_all_of_a_plan_are_decided_call_by_call(api: httpx.Client, letters: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_dead, "BATCH", 2)
    body: dict[str, Any] = {"plan": stream_of(api, letters[0])}
    done = []
    while True:
        told = ok(api.post("/api/dead-letters/retry", json=body, headers={"Idempotency-Key": f"{letters[0]} {body.get('cursor')}"}))
        done += told["items"]
        if told["next"] is None:
            break
        body |= {"cursor": told["next"], "until": told["until"]}
    assert done == letters
    assert ok(api.get("/api/dead-letters", params={"plan": stream_of(api, letters[0])}))["items"] == []


def test_what_cannot_be_asked(api: httpx.Client, letters: list[int]) -> None:
    plan = stream_of(api, letters[0])
    for body, field in [
        ({}, "items"),
        ({"items": []}, "items"),
        ({"items": [1], "plan": plan}, "items"),
        ({"items": [1], "all": True}, "items"),
        ({"items": [0]}, "items.0"),
        ({"items": [2**63]}, "items.0"),
        ({"items": "1"}, "items"),
        ({"items": [1] * 10_001}, "items"),
        ({"plan": plan, "cursor": "1:1"}, "until"),
        ({"plan": plan, "cursor": "x", "until": "2030-01-31T09:00:00Z"}, "cursor"),
        ({"plan": plan, "group": "nul\0"}, "group"),
    ]:
        response = api.post("/api/dead-letters/skip", json=body)
        assert problem(response, 422, "invalid")["field"] == field
    problem(api.post("/api/dead-letters/skip", json={"plan": "nul\0"}), 404, "unknown-plan")
    problem(api.post("/api/dead-letters/skip", json={"plan": "nowhere"}), 404, "unknown-plan")
    problem(api.post("/api/dead-letters/skip", json={"group": "0123456789ab"}), 404, "unknown-group")
    problem(api.get("/api/dead-letters?plan=%00"), 404, "unknown-plan")
    assert problem(api.post("/api/dead-letters/resolve", json={"all": True}), 422, "invalid")["field"] == "note"
    for query in ("group=x", "group=%00", "cursor=x", "limit=0"):
        assert problem(api.get(f"/api/dead-letters?{query}"), 422, "invalid")["field"] == query.partition("=")[0]
    name = fresh_name("serial")
    ok(api.post("/api/plans", json={"name": name}), 201)
    problem(api.get(f"/api/dead-letters?plan={name}"), 409, "not-a-stream")
