"""Schedules over HTTP: made, listed page by page, edited, paused, resumed, removed, and one item more; who may do it."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from app.caller import Caller, Role
from tests.app.web import ok, problem, serving

MIRROR = {"name": "mirror", "plan": "hourly", "cron": "0 * * * *", "task": "http", "args": {"url": "http://x"}, "title": "Mirror"}


@pytest.fixture
def api(engine: Engine) -> Iterator[httpx.Client]:
    with serving(engine, lambda request: Caller("http", Role[request.headers.get("x-role", "ADMIN")])) as client:
        ok(client.post("/api/plans", json={"name": "hourly"}), 201)
        yield client


def names(api: httpx.Client, **asked: Any) -> list[str]:
    return [each["name"] for each in ok(api.get("/api/schedules", params=asked))["items"]]


def test_schedules_are_made_shown_paused_and_removed(api: httpx.Client) -> None:
    made = ok(api.post("/api/schedules", json=MIRROR), 201)
    assert len(made["ticks"]) == 5
    problem(api.post("/api/schedules", json=MIRROR), 409, "schedule-exists")
    assert problem(api.post("/api/schedules", json={**MIRROR, "name": "b", "cron": "61 * * * *"}), 422, "invalid")["field"] == "cron"
    assert ok(api.post("/api/schedules/mirror/pause", json={"reason": "x"}))["paused"]
    assert not ok(api.post("/api/schedules/mirror/resume"))["paused"]
    assert ok(api.post("/api/schedules/mirror/add"), 201)["new"]
    assert ok(api.delete("/api/schedules/mirror", params={"reason": "gone"}))["name"] == "mirror"
    problem(api.get("/api/schedules/mirror"), 404, "unknown-schedule")
    events = ok(api.get("/api/events", params={"plan": "hourly"}))["items"]
    assert [each["action"] for each in events] == ["remove", "add", "resume", "pause", "create", "create"]
    assert events[0]["reason"] == "gone"
    problem(api.get("/api/schedules/NO"), 404, "unknown-schedule")


def test_the_list_comes_page_by_page(api: httpx.Client) -> None:
    ok(api.post("/api/plans", json={"name": "daily"}), 201)
    for name, plan in (("a", "daily"), ("b", "hourly"), ("c", "daily")):
        ok(api.post("/api/schedules", json={**MIRROR, "name": name, "plan": plan, "title": f"Title {name}"}), 201)
    first = ok(api.get("/api/schedules", params={"limit": 2}))
    assert ([each["name"] for each in first["items"]], first["next"]) == (["a", "b"], "b")
    last = ok(api.get("/api/schedules", params={"limit": 2, "cursor": first["next"]}))
    assert ([each["name"] for each in last["items"]], last["next"]) == (["c"], None)
    assert names(api, plan="daily") == ["a", "c"]
    assert names(api, text="TITLE B") == ["b"]
    problem(api.get("/api/schedules", params={"plan": "nowhere"}), 404, "unknown-plan")


def test_an_edit_changes_what_it_names(api: httpx.Client) -> None:
    ok(api.post("/api/schedules", json=MIRROR), 201)
    edited = ok(api.patch("/api/schedules/mirror", json={"cron": "30 2 * * *", "timezone": "Europe/Madrid", "args": ["http://y"]}))
    assert (edited["cron"], edited["timezone"], edited["args"], edited["kwargs"]) == ("30 2 * * *", "Europe/Madrid", ["http://y"], {})
    assert (edited["title"], edited["task"], edited["plan"]) == ("Mirror", "http", "hourly")
    assert edited["next_at"] == edited["ticks"][0]
    event = ok(api.get("/api/events", params={"action": "edit"}))["items"][0]
    assert (event["actor"], event["after"]["cron"], event["before"]["kwargs"]) == ("http", "30 2 * * *", {"url": "http://x"})
    for change, status, word, field in [
        ({"cron": "0 0 31 2 *"}, 422, "invalid", "cron"),
        ({"timezone": "Mars/Base"}, 422, "invalid", "timezone"),
        ({"missed": "never"}, 422, "invalid", "missed"),
        ({"name": "other"}, 422, "invalid", "name"),
        ({"paused": True}, 422, "invalid", "paused"),
        ({"title": None}, 422, "invalid", "title"),
        ({}, 422, "invalid", "body"),
        ({"plan": "nowhere"}, 404, "unknown-plan", None),
        ({"task": "nothing"}, 422, "unknown-task", "task"),
    ]:
        told = problem(api.patch("/api/schedules/mirror", json=change), status, word)
        assert told.get("field") == field, change
    problem(api.patch("/api/schedules/nobody", json={"title": "x"}), 404, "unknown-schedule")
    assert ok(api.get("/api/schedules/mirror")) == edited


def test_a_command_is_an_admins_to_schedule(api: httpx.Client) -> None:
    command = {**MIRROR, "task": "shell", "args": {"command": ["true"]}}
    operator, viewer = {"x-role": "OPERATE"}, {"x-role": "VIEW"}
    problem(api.post("/api/schedules", json=command, headers=operator), 403, "forbidden")
    ok(api.post("/api/schedules", json=command), 201)
    ok(api.post("/api/schedules", json={**MIRROR, "name": "plain"}, headers=operator), 201)
    for change in ({"title": "x"}, {"cron": "5 * * * *"}, {"task": "http"}):
        problem(api.patch("/api/schedules/mirror", json=change, headers=operator), 403, "forbidden")
    problem(api.post("/api/schedules/mirror/add", headers=operator), 403, "forbidden")
    problem(api.patch("/api/schedules/plain", json={"task": "shell"}, headers=operator), 403, "forbidden")
    ok(api.patch("/api/schedules/plain", json={"title": "x"}, headers=operator))
    ok(api.post("/api/schedules/mirror/pause", headers=operator))
    for call in (
        api.patch("/api/schedules/plain", json={"title": "y"}, headers=viewer),
        api.post("/api/schedules/plain/resume", headers=viewer),
        api.delete("/api/schedules/plain", headers=viewer),
    ):
        problem(call, 403, "forbidden")
    assert names(api) == ["mirror", "plain"]
