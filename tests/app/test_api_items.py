"""Items of a plan over HTTP: adding one and many, keys, lists."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, text

from tests.app.web import ok, problem
from tests.servers import fresh_name

SHELL = {"task": "shell", "args": {"command": ["true"]}}


@pytest.fixture
def plan(api: httpx.Client) -> str:
    """The address of the items of a plan of this test alone."""
    name = fresh_name("plan")
    ok(api.post("/api/plans", json={"name": name}), 201)
    return f"/api/plans/{name}/items"


def titles(api: httpx.Client, plan: str, **query: Any) -> list[str]:
    return [each["title"] for each in ok(api.get(plan, params=query))["items"]]


def test_one_is_added_where_it_is_said(api: httpx.Client, plan: str) -> None:
    first = ok(api.post(plan, json={**SHELL, "title": "first", "kind": "audit"}), 201)
    assert (first["state"], first["task"], first["kwargs"], first["kind"]) == ("waiting", "shell", {"command": ["true"]}, "audit")
    ok(api.post(f"{plan}?last=true", json={**SHELL, "title": "last"}), 201)
    ok(api.post(f"{plan}?after={first['id']}", json={"task": "http", "args": [], "title": "middle", "delay": 900}), 201)
    ok(api.post(f"{plan}?first=true", json={**SHELL, "title": "front", "not_before": "2030-01-31T10:00:00+01:00"}), 201)
    assert titles(api, plan) == ["front", "first", "middle", "last"]
    shown = ok(api.get(f"/api/items/{first['id']}"))
    assert shown["item"] == first
    assert [(each["actor"], each["action"]) for each in shown["events"]] == [("http", "add")]
    problem(api.post(f"{plan}?first=true&last=true", json=SHELL), 422, "invalid")
    problem(api.post(f"{plan}?after=999999", json=SHELL), 409, "not-in-line")


def test_many_are_added_together_or_not_at_all(api: httpx.Client, plan: str) -> None:
    many = [{**SHELL, "title": f"{number}", "key": f"key {number}"} for number in range(50)]
    added = ok(api.post(plan, json=many), 201)["items"]
    assert [each["new"] for each in added] == [True] * 50
    assert ok(api.post(plan, json=many))["items"] == [{"id": each["id"], "new": False} for each in added]
    told = problem(api.post(plan, json=[{**SHELL, "title": "good"}, {**SHELL, "titel": "bad"}]), 422, "invalid")
    assert told["field"] == "1.titel"
    problem(api.post(plan, json=[SHELL, {"task": "nobody.offers_this"}]), 422, "unknown-task")
    problem(api.post(plan, json=[SHELL] * 10_001), 413, "too-large")
    assert ok(api.post(plan, json=[])) == {"items": []}
    assert titles(api, plan, limit=500) == [f"{number}" for number in range(50)]


def test_the_same_key_gives_the_same_item_and_another_content_is_refused(api: httpx.Client, plan: str) -> None:
    first = ok(api.post(plan, json={**SHELL, "title": "one", "key": "k"}), 201)
    assert ok(api.post(plan, json={**SHELL, "title": "one", "key": "k"})) == first
    told = problem(api.post(plan, json={**SHELL, "title": "two", "key": "k"}), 409, "key-conflict")
    assert (told["field"], told["item"]) == ("key", first["id"])
    assert titles(api, plan) == ["one"]


def test_e1_the_same_call_fifty_times_at_once_adds_one_item(api: httpx.Client, plan: str) -> None:
    call = {"json": {**SHELL, "title": "once"}, "headers": {"Idempotency-Key": plan}}

    def post(_: int) -> httpx.Response:
        with httpx.Client(base_url=api.base_url, headers=api.headers, timeout=30, trust_env=False) as another:
            return another.post(plan, **call)  # type: ignore[arg-type]

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(post, range(50)))
    made = [each for each in answers if each.status_code == 201]
    busy = [each for each in answers if each.status_code == 503]
    assert len(made) + len(busy) == 50
    assert {each.text for each in made} == {made[0].text}
    assert sum("Idempotent-Replayed" not in each.headers for each in made) == 1
    assert titles(api, plan) == ["once"]
    told = problem(api.post(plan, json={**SHELL, "title": "other"}, headers=call["headers"]), 409, "call-conflict")  # type: ignore[arg-type]
    assert told["field"] == "Idempotency-Key"
    problem(api.patch(f"/api/items/{made[0].json()['id']}", headers=call["headers"], json={"title": "x"}), 409, "call-conflict")  # type: ignore[arg-type]
    assert titles(api, plan) == ["once"]


def test_a_refused_call_leaves_its_key_free(api: httpx.Client, plan: str) -> None:
    headers = {"Idempotency-Key": f"refused {plan}"}
    problem(api.post(plan, json={"task": "nobody.offers_this"}, headers=headers), 422, "unknown-task")
    ok(api.post(plan, json=SHELL, headers=headers), 201)
    for key in ("", "x" * 256):
        told = problem(api.post(plan, json=SHELL, headers={"Idempotency-Key": key}), 422, "invalid")
        assert told["field"] == "Idempotency-Key"


def test_a_key_is_forgotten_after_a_day(api: httpx.Client, plan: str, http_engine: Engine) -> None:
    headers = {"Idempotency-Key": f"old {plan}"}
    first = ok(api.post(plan, json=SHELL, headers=headers), 201)
    with http_engine.begin() as tx:
        tx.execute(text("update relevo.call set at = now() - interval '25 hours'"))
    second = ok(api.post(plan, json=SHELL, headers=headers), 201)
    assert second["id"] != first["id"]


@pytest.mark.parametrize("state", ["unsettled", "waiting", "settled", "cancelled"])
def test_lists_are_paged_without_gap_or_repeat(api: httpx.Client, plan: str, state: str) -> None:
    added = ok(api.post(plan, json=[{**SHELL, "title": f"{number}"} for number in range(25)]), 201)["items"]
    if state in ("settled", "cancelled"):
        for each in added:
            ok(api.post(f"/api/items/{each['id']}/cancel"))
    seen, cursor, pages = list[int](), None, 0
    while cursor is not None or pages == 0:
        page = ok(api.get(plan, params={"state": state, "limit": 10, **({"cursor": cursor} if cursor else {})}))
        seen += [each["id"] for each in page["items"]]
        cursor, pages = page["next"], pages + 1
    ids = [each["id"] for each in added]
    assert (seen, pages) == (ids if state in ("unsettled", "waiting") else ids[::-1], 3)


def test_lists_are_looked_through_by_kind_and_text(api: httpx.Client, plan: str) -> None:
    for number in range(30):
        body = {**SHELL, "title": f"Ünï 100% no {number}", "kind": "fix" if number % 3 else "audit", "key": f"{plan} {number}"}
        ok(api.post(plan, json=body), 201)
    assert len(titles(api, plan, kind="audit")) == 10
    assert titles(api, plan, text="100% NO 7") == ["Ünï 100% no 7"]
    assert titles(api, plan, text="ünï", kind="fix", limit=2) == ["Ünï 100% no 1", "Ünï 100% no 2"]
    page = ok(api.get(plan, params={"kind": "audit", "limit": 4}))
    rest = ok(api.get(plan, params={"kind": "audit", "cursor": page["next"]}))
    assert (len(page["items"]), len(rest["items"]), rest["next"]) == (4, 6, None)
    assert titles(api, plan, kind="none") == titles(api, plan, state="running") == titles(api, plan, state="unresolved") == []


def test_a_look_through_a_long_list_goes_on_with_the_next_page(api: httpx.Client, plan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ordering.listing.SCAN", 10)
    for number in range(25):
        ok(api.post(plan, json={**SHELL, "kind": "rare" if number == 22 else "usual"}), 201)
    found, cursor, pages = 0, None, 0
    while cursor is not None or pages == 0:
        page = ok(api.get(plan, params={"kind": "rare", **({"cursor": cursor} if cursor else {})}))
        found, cursor, pages = found + len(page["items"]), page["next"], pages + 1
    assert (found, pages) == (1, 3)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"task": None}, "task"),
        ({"task": ""}, "task"),
        ({"task": "nobody.offers_this"}, "task"),
        ({"task": "nul\0"}, "task"),
        ({"args": "text"}, "args"),
        ({"args": {"a": "nul \0"}}, "args"),
        ({"args": {"nul \0": 1}}, "args"),
        ({"args": ["x" * 1_000_000]}, "args"),
        ({"args": {"n": 10**400}}, None),
        ({"title": "x" * 12_001}, "title"),
        ({"title": "\u200b\u2060"}, "title"),
        ({"kind": "x" * 101}, "kind"),
        ({"key": ""}, "key"),
        ({"key": "nul \0"}, "key"),
        ({"key": "x" * 501}, "key"),
        ({"delay": 10**12}, "delay"),
        ({"delay": -1}, "delay"),
        ({"delay": "1h"}, "delay"),
        ({"delay": 1, "not_before": "2030-01-31T10:00:00Z"}, "delay"),
        ({"not_before": "2030-01-31T10:00:00"}, "not_before"),
        ({"not_before": "9999-12-31T23:59:59Z"}, "not_before"),
        ({"not_before": 5}, "not_before"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"on_interrupt": "perhaps"}, "on_interrupt"),
        ({"state": "succeeded"}, "state"),
    ],
)
def test_what_cannot_be_accepted_is_named(api: httpx.Client, plan: str, change: dict[str, Any], field: str | None) -> None:
    response = api.post(plan, json={**SHELL, **change})
    if field is None:  # Postgres has no limit for numbers either
        ok(response, 201)
        return
    told = problem(response, 422, "unknown-task" if change.get("task") in ("nobody.offers_this", "", "nul\0") else "invalid")
    assert told["field"] == field
    assert ok(api.get(plan))["items"] == []


def test_queries_that_cannot_be(api: httpx.Client, plan: str) -> None:
    for query in ("state=odd", "state=%00", "kind=%00", "text=%00", "cursor=x", "cursor=1~x", "cursor=NaN~1", "cursor=1e99~1", "limit=0"):
        assert problem(api.get(f"{plan}?{query}"), 422, "invalid")["field"] == query.partition("=")[0]
    for cursor in ("x", "1~1", "2030-01-31~1", "2030-01-31T00:00:00Z~x", "%00~1"):
        assert problem(api.get(f"{plan}?state=settled&cursor={cursor}"), 422, "invalid")["field"] == "cursor"
    for name in ("after", "before"):
        for number in ("0", "x", str(2**63), "9" * 4000):
            assert problem(api.post(f"{plan}?{name}={number}", json=SHELL), 422, "invalid")["field"] == name
