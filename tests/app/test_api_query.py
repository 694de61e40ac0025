"""The address of a call: parameters that its route has, each once, in UTF-8; and which methods it has."""

import httpx
import pytest

from app import assets
from tests.app.web import ok, problem
from tests.servers import fresh_name

SHELL = {"task": "shell", "args": {"command": ["true"]}}


@pytest.fixture(scope="module")
def plan(api: httpx.Client) -> str:
    name = fresh_name("plan")
    ok(api.post("/api/plans", json={"name": name}), 201)
    return f"/api/plans/{name}"


@pytest.mark.parametrize(
    ("call", "field", "sentence"),
    [
        ("GET /api/plans?limit=5&limit=6", "limit", "limit: is given 2 times; give it once."),
        ("GET /api/plans?limit=5&limi%74=5", "limit", "limit: is given 2 times; give it once."),
        ("GET /api/plans?limt=5", "limt", "limt: is no parameter of this call; it has limit, cursor, text."),
        ("GET /api/plans?=5", "an empty name", "an empty name: is no parameter of this call; it has limit, cursor, text."),
        ("POST {plan}/items?frist=true", "frist", "frist: is no parameter of this call; it has first, last, after, before."),
        ("POST {plan}/items?first=true&first=false", "first", "first: is given 2 times; give it once."),
        ("POST {plan}/items/move?first=true", "first", "first: is no parameter of this call; it has none."),
        ("GET {plan}?state=waiting", "state", "state: is no parameter of this call; it has none."),
        ("DELETE /api/subscriptions?type=a&task=b&task=c", "task", "task: is given 2 times; give it once."),
        ("GET /api/events/stream?befor=1", "befor", "befor: is no parameter of this call; it has after."),
        ("GET /api/events/stream?after=1&after=2", "after", "after: is given 2 times; give it once."),
    ],
)
def test_a_parameter_that_nobody_knows_or_that_comes_twice_is_refused(
    api: httpx.Client, plan: str, call: str, field: str, sentence: str
) -> None:
    method, address = call.format(plan=plan).split(" ")
    told = problem(api.request(method, address, json=SHELL), 422, "invalid")
    assert (told["field"], told["detail"]) == (field, sentence)
    assert ok(api.get(f"{plan}/items"))["items"] == []


def test_a_page_goes_by_what_it_knows(api: httpx.Client) -> None:
    for address in ("/?text=a&text=b&from=a-newsletter", "/healthz?now=1", "/trail?action=move&action=add"):
        assert api.get(address, headers={"Accept": "text/html"}).status_code == 200, address


def test_an_address_that_is_not_utf8_is_refused(api: httpx.Client, plan: str) -> None:
    for address in ("/api/plans?text=%ff", "/api/plans?text=%c3", "/api/plans/%ff", f"{plan}/items?%e9=1"):
        told = problem(api.get(address), 400, "bad-request")
        assert told["detail"].startswith("The address is not UTF-8")
    page = api.get("/find?q=caf%e9", headers={"Accept": "text/html"})
    assert (page.status_code, "The address is not UTF-8" in page.text) == (400, True)


def test_head_is_answered_as_get_without_the_body(api: httpx.Client, plan: str) -> None:
    found = {"/healthz": 200, "/readyz": 200, "/": 200, plan: 200, "/api/openapi.json": 200, assets.address("cards.css"): 200}
    addresses = {**found, "/api/plans/nobody": 404}
    for address, status in addresses.items():
        got, head = api.get(address), api.head(address)
        assert (got.status_code, head.status_code, head.content) == (status, status, b""), address
        assert head.headers["content-type"] == got.headers["content-type"]
        assert int(head.headers["content-length"]) > 0
    problem(api.get("/api/nothing"), 404, "not-found")  # on the same connection: nothing of a body is left in it


@pytest.mark.parametrize(
    ("call", "allowed"),
    [
        ("DELETE {plan}", "GET, HEAD, PATCH"),
        ("OPTIONS {plan}", "GET, HEAD, PATCH"),
        ("PUT /api/plans", "GET, HEAD, POST"),
        ("PATCH /api/subscriptions", "GET, HEAD, DELETE"),
        ("GET {plan}/start", "POST"),
        ("HEAD {plan}/start", "POST"),
        ("HEAD /api/events/stream", "GET"),
        ("POST /healthz", "GET, HEAD"),
        ("BREW /readyz", "GET, HEAD"),
    ],
)
def test_a_method_that_an_address_has_not_is_told_those_that_it_has(api: httpx.Client, plan: str, call: str, allowed: str) -> None:
    method, address = call.format(plan=plan).split(" ")
    kind = "application/x-www-form-urlencoded" if address == "/healthz" else "application/json"
    answer = api.request(method, address, headers={"Content-Type": kind, "Origin": str(api.base_url).rstrip("/")})
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        assert problem(answer, 405, "method-not-allowed")["detail"].endswith(f"it has {allowed}.")
