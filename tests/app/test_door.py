"""What every HTTP request passes first: hosts, origins, content types, sizes, broken JSON; and the headers of every answer."""

import json
import socket
from typing import Any

import httpx
import pytest

from app import door
from tests.app.web import ok, problem


def raw(api: httpx.Client, *parts: bytes, ends: bool = False) -> bytes:
    """What the server answers to these bytes, until it closes; `ends`: we say no more after them."""
    with socket.create_connection((api.base_url.host, api.base_url.port or 80), timeout=60) as client:
        for part in parts:
            client.sendall(part)
        if ends:
            client.shutdown(socket.SHUT_WR)
        answer = b""
        while chunk := client.recv(65_536):
            answer += chunk
        return answer


def test_every_answer_has_the_headers(api: httpx.Client) -> None:
    for response in (api.get("/healthz"), api.get("/api/plans"), api.get("/api/nothing"), api.get("/api/openapi.json")):
        for name, value in door.HEADERS.items():
            assert response.headers[name] == value
        assert "server" not in response.headers
        assert not any(name.startswith("access-control") for name in response.headers)


@pytest.mark.parametrize("name", door.ONCE)
def test_a_header_of_which_one_alone_can_be_meant_is_refused_twice(api: httpx.Client, name: str) -> None:
    twice = [*api.headers.items(), (name, "application/json"), (name, "application/json")]
    if name == "Content-Type":
        twice.pop()  # the client has one of its own
    told = problem(api.post("/api/plans", headers=twice, json={"name": "twice"}), 400, "bad-request")
    assert told["detail"] == f"{name}: is given 2 times; give it once."
    problem(api.get("/api/plans/twice"), 404, "unknown-plan")


def test_a_head_that_is_too_long_is_told_so(api: httpx.Client) -> None:
    begin, end, close = b"GET /api/plans", b" HTTP/1.1\r\nHost: localhost\r\n", b"Connection: close\r\n"
    for parts in (
        [begin + b"?text=" + b"a" * 40_000 + end + close + b"\r\n"],
        [begin + end + close + b"X: " + b"a" * 40_000 + b"\r\n\r\n"],
        [begin + end, *([b"X: " + b"a" * 4_000 + b"\r\n"] * 10)],
        [begin + b"?text=", *([b"a" * 4_000] * 10)],
    ):
        answer = raw(api, *parts)
        assert answer.startswith(b"HTTP/1.1 431 "), answer[:100]
        assert b"The address and the headers have more than 32768 bytes; send less." in answer


@pytest.mark.parametrize("host", ["relevo.example", "relevo.example:8000", "127.0.0.1.example", "10.0.0.1", "", "[", "localhost.example"])
def test_a_name_that_is_not_of_this_machine_is_not_served(api: httpx.Client, host: str) -> None:
    problem(api.get("/api/plans", headers={"Host": host}), 421, "wrong-host")
    problem(api.get("/healthz", headers={"Host": host}), 421, "wrong-host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "127.1.2.3:1", "[::1]:8000"])
def test_every_name_of_this_machine_is_served(api: httpx.Client, host: str) -> None:
    ok(api.get("/api/plans", headers={"Host": host}))


@pytest.mark.parametrize("origin", ["https://example.org", "null", "", "http://localhost:1", "http://[", "file://"])
def test_a_page_of_another_site_is_refused(api: httpx.Client, origin: str) -> None:
    for method in ("GET", "POST"):
        problem(api.request(method, "/api/plans", headers={"Origin": origin}, json={"name": "evil"}), 403, "forbidden")
    preflight = api.options("/api/plans", headers={"Origin": origin, "Access-Control-Request-Method": "POST"})
    assert preflight.status_code == 403
    problem(api.get("/api/plans/evil"), 404, "unknown-plan")


def test_our_own_page_is_not(api: httpx.Client) -> None:
    ok(api.get("/api/plans", headers={"Origin": str(api.base_url).rstrip("/")}))


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp", ""]
)
def test_a_write_is_json(api: httpx.Client, kind: str) -> None:
    problem(api.post("/api/plans", content=b'{"name": "formed"}', headers={"Content-Type": kind}), 415, "wrong-content-type")
    problem(api.post("/api/plans/formed/start", headers={"Content-Type": kind}), 415, "wrong-content-type")
    problem(api.get("/api/plans/formed"), 404, "unknown-plan")


def test_a_write_in_disguise_is_refused(api: httpx.Client) -> None:
    gzip = {"Content-Encoding": "gzip"}
    problem(api.post("/api/plans", content=b"x", headers=gzip), 415, "wrong-content-type")
    problem(api.post("/api/plans", json={"name": "a"}, headers={"X-HTTP-Method-Override": "DELETE", "Origin": "null"}), 403, "forbidden")


NOT_JSON = [
    b"{",
    b"",
    b"nul",
    b'{"name": "a"} x',
    b"\xff\xfe",
    '{"name": "ä"}'.encode("utf-16"),
    '{"name": "ä"}'.encode("latin-1"),
    b'{"name": NaN}',
    b'{"name": -Infinity}',
    b'{"concurrency": ' + b"9" * 5000 + b"}",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b"[" * 100_000 + b"]" * 100_000,
]


@pytest.mark.parametrize("content", NOT_JSON, ids=lambda content: repr(content[:20]))
@pytest.mark.parametrize("path", ["/api/plans", "/api/plans/some/items", "/api/items/1/move"])
def test_what_is_not_json(api: httpx.Client, path: str, content: bytes) -> None:
    ok(api.post("/api/plans", json={"name": "some"}), 201) if api.get("/api/plans/some").status_code == 404 else None
    response = api.post(path, content=content)
    if content == b"":
        problem(response, 422, "invalid")
    else:
        problem(response, 400, "bad-request")


@pytest.mark.parametrize("value", ["\ud800", "a\udfff", "\0"])
def test_half_a_surrogate_pair_and_nul_anywhere(api: httpx.Client, value: str) -> None:
    """Written as JSON escapes, which are well-formed JSON."""
    ok(api.post("/api/plans", json={"name": "text"}), 201) if api.get("/api/plans/text").status_code == 404 else None
    bodies: list[dict[str, Any]] = [{"task": value}, {"task": "shell", value: 1}]
    for name in ("title", "kind", "key", "not_before", "delay", "on_interrupt"):
        bodies.append({"task": "shell", name: value})
    for args in ([value], {"a": value}, {value: 1}, {"a": [{"b": value}]}):
        bodies.append({"task": "shell", "args": args})
    for body in bodies:
        response = api.post("/api/plans/text/items", content=json.dumps(body))
        assert response.status_code == 422, response.text
        assert json.loads(response.content)["field"]
    assert ok(api.get("/api/plans/text/items"))["items"] == []


def test_numbers_without_end_are_refused(api: httpx.Client) -> None:
    ok(api.post("/api/plans", json={"name": "numbers"}), 201)
    for number in ("1e400", "-1e999", "1E+1000000000"):
        told = problem(api.post("/api/plans/numbers/items", content=f'{{"task": "shell", "args": [{number}]}}'), 422, "invalid")
        assert told["field"] == "args"
        problem(api.post("/api/plans/numbers/items", content=f'{{"task": "shell", "delay": {number}}}'), 422, "invalid")


@pytest.mark.parametrize("levels", [101, 200, 900])
def test_what_is_nested_too_deeply_is_refused_and_what_is_not_comes_back(api: httpx.Client, levels: int) -> None:
    if levels == 101:
        ok(api.post("/api/plans", json={"name": "deep"}), 201)
    content = '{"task": "shell", "args": ' + "[" * levels + "]" * levels + "}"
    assert problem(api.post("/api/plans/deep/items", content=content), 422, "invalid")["field"] == "args"
    if levels == 101:
        item = ok(api.post("/api/plans/deep/items", content=content.replace("[]", "")), 201)
        assert ok(api.get(f"/api/items/{item['id']}"))["item"] == item


def test_too_large_is_said_before_it_is_read(api: httpx.Client) -> None:
    head = b"POST /api/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    assert raw(api, head + b"Content-Length: 99999999999\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    assert raw(api, head + b"Content-Length: 1048577\r\n\r\n").startswith(b"HTTP/1.1 413 ")
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    assert b"HTTP/1.1 413 " in raw(api, chunked, *[chunk] * 17)
    problem(api.post("/api/plans", content=b" " * (door.BODY_LIMIT + 1)), 413, "too-large")
    problem(api.post("/api/plans/x/items", content=b" " * (door.BULK_LIMIT + 1)), 413, "too-large")


def test_only_so_much_is_held_at_a_time(api: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "HELD_LIMIT", 1000)
    answer = api.post("/api/plans", content=b" " * 2000)
    problem(answer, 503, "busy")
    assert answer.headers["retry-after"] == "2"
    for _ in range(3):  # what was held is given back
        problem(api.post("/api/plans", content=b"{}" + b" " * 900), 422, "invalid")


@pytest.mark.parametrize(
    "content",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /api/plans HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /api/plans HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
        b"POST /api/plans HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /api/plans HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
    ids=lambda content: repr(content[:30]),
)
def test_what_is_not_http_is_one_answer(api: httpx.Client, content: bytes) -> None:
    answer = raw(api, content, ends=True)
    assert answer.startswith(b"HTTP/1.1 4"), answer[:200]
    ok(api.get("/healthz"))


def test_a_client_that_goes_away_in_the_middle_leaves_nothing_held(api: httpx.Client) -> None:
    head = b"POST /api/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
    for _ in range(5):
        raw(api, head + b'{"name":', ends=True)
    ok(api.get("/api/plans"))
