"""Many items at once over HTTP: in their order, all or none."""

import httpx
import pytest

from tests.app.web import ok, problem
from tests.servers import fresh_name


@pytest.fixture
def line(api: httpx.Client) -> tuple[str, list[int]]:
    """A plan of this test with five items; its address and their ids."""
    name = fresh_name("bulk")
    ok(api.post("/api/plans", json={"name": name}), 201)
    added = ok(api.post(f"/api/plans/{name}/items", json=[{"task": "http", "args": {"url": "http://x"}}] * 5), 201)
    return f"/api/plans/{name}", [each["id"] for each in added["items"]]


def order(api: httpx.Client, path: str) -> list[int]:
    return [each["id"] for each in ok(api.get(f"{path}/items", params={"state": "waiting"}))["items"]]


def test_many_move_to_one_place_in_the_order_in_which_they_stand(api: httpx.Client, line: tuple[str, list[int]]) -> None:
    path, (a, b, c, d, e) = line
    moved = ok(api.post(f"{path}/items/move", json={"items": [e, c], "after": a, "seen": b}))
    assert [each["id"] for each in moved["items"]] == [c, e]
    assert order(api, path) == [a, c, e, b, d]
    ok(api.post(f"{path}/items/move", json={"items": [a, b], "last": True}))
    assert order(api, path) == [c, e, d, a, b]
    ok(api.post(f"{path}/items/move", json={"items": [a, d], "first": True}))
    assert order(api, path) == [d, a, c, e, b]
    events = [each["id"] for each in ok(api.get("/api/events", params={"plan": path.rpartition("/")[2], "action": "move"}))["items"]]
    ok(api.post("/api/events/undo", json={"events": events[:2]}))
    assert order(api, path) == [c, e, d, a, b]


def test_all_or_none(api: httpx.Client, line: tuple[str, list[int]]) -> None:
    path, (a, b, c, d, e) = line
    ok(api.post(f"{path}/items/cancel", json={"items": [b], "reason": "not needed"}))
    for verb, body in (
        ("move", {"items": [a, b], "last": True}),
        ("postpone", {"items": [a, b], "delay": 60}),
        ("cancel", {"items": [a, b]}),
        ("retry", {"items": [a, c]}),
    ):
        assert api.post(f"{path}/items/{verb}", json=body).status_code == 409, verb
    assert problem(api.post(f"{path}/items/move", json={"items": [d], "after": a, "seen": e}), 409, "stale-order")["order"] == [a, c, d, e]
    assert order(api, path) == [a, c, d, e]
    ok(api.post(f"{path}/items/postpone", json={"items": [a, c], "delay": 60}))
    assert order(api, path) == [d, e]


def test_what_cannot_be_asked_for_is_named(api: httpx.Client, line: tuple[str, list[int]]) -> None:
    path, (a, b, *_) = line
    other = fresh_name("bulk")
    ok(api.post("/api/plans", json={"name": other}), 201)
    elsewhere = ok(api.post(f"/api/plans/{other}/items", json={"task": "http"}), 201)["id"]
    for body, field in (
        ({"items": [a, elsewhere], "last": True}, "items"),
        ({"items": [a, b], "after": b}, "items"),
        ({"items": [a]}, "place"),
        ({"items": [], "last": True}, "items"),
        ({"items": [a] * 1001, "last": True}, "items"),
    ):
        assert problem(api.post(f"{path}/items/move", json=body), 422, "invalid")["field"] == field
    problem(api.post(f"{path}/items/move", json={"items": [10**15], "last": True}), 404, "unknown-item")


def test_when_a_waiting_item_may_start(api: httpx.Client, line: tuple[str, list[int]]) -> None:
    path, (a, b, *_) = line
    edited = ok(api.patch(f"/api/items/{a}", json={"not_before": "2030-01-31T09:00:00Z"}))
    assert (edited["state"], edited["not_before"]) == ("waiting", "2030-01-31T09:00:00Z")
    assert order(api, path)[0] == a
    assert ok(api.patch(f"/api/items/{a}", json={"title": "later"}))["not_before"] == "2030-01-31T09:00:00Z"
    assert ok(api.patch(f"/api/items/{a}", json={"not_before": "2020-01-01T00:00:00Z"}))["not_before"] is None
    ok(api.post(f"/api/items/{b}/postpone", json={"delay": 60}))
    problem(api.patch(f"/api/items/{b}", json={"not_before": "2030-01-31T09:00:00Z"}), 409, "not-allowed")
    assert problem(api.patch(f"/api/items/{a}", json={"not_before": "2099-01-31T09:00:00Z"}), 422, "invalid")["field"] == "not_before"


def test_what_was_printed(api: httpx.Client, line: tuple[str, list[int]]) -> None:
    _, (a, *_) = line
    shown = ok(api.get(f"/api/items/{a}/output"))
    assert (shown["attempt"], shown["running"], shown["head"], shown["state"]) == (None, False, "", "waiting")
    problem(api.get(f"/api/items/{10**15}/output"), 404, "unknown-item")
    assert problem(api.get(f"/api/items/{a}/output?attempt=0"), 422, "invalid")["field"] == "attempt"
