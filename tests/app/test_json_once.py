"""A call whose body names a field twice is refused, and nothing of it is done."""

import httpx

from tests.app.web import ok, problem
from tests.servers import fresh_name


def test_a_field_given_twice_is_named(api: httpx.Client) -> None:
    name = fresh_name("twice")
    ok(api.post("/api/plans", json={"name": name}), 201)
    for path, body in (
        (f"/api/plans/{name}/items", '{"task": "http", "args": {"url": "http://x"}, "delay": 1, "delay": 2}'),
        (f"/api/plans/{name}/items", '[{"task": "http", "args": {"delay": 1, "delay": 2}}]'),
    ):
        refused = problem(api.post(path, content=body), 400, "bad-request")
        assert refused["detail"] == "The body names 'delay' twice in one object; give it once."
    assert ok(api.get(f"/api/plans/{name}/items"))["items"] == []
