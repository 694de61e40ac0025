"""The body of the task `http`, against a real server on loopback."""

import gzip
import json
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import FrameType
from typing import Any

import pytest

from tests.patience import Stopwatch
from workers.webhook import BadRequest, RequestFailed, request

KEY = "item-7/attempt"


Serve = Callable[[Callable[[socket.socket], object]], str]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        server = self.server
        assert isinstance(server, Server)
        server.seen.append((self.command, self.path, dict(self.headers), body))
        status, headers, text = server.answers.get(self.path, (200, {"Content-Type": "text/plain"}, b"well"))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # the client stops reading when it has enough
                self.wfile.write(text)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.answers: dict[str, tuple[int, dict[str, str], bytes]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def raw() -> Iterator[Serve]:
    """Serves one connection by a function; gives the address."""
    served: list[tuple[socket.socket, threading.Thread]] = []

    def serve(work: Callable[[socket.socket], object]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))

        def once() -> None:
            with suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    work(connection)

        thread = threading.Thread(target=once)
        thread.start()
        served.append((listener, thread))
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield serve
    for listener, thread in served:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def send(url: str, method: str = "POST", **words: Any) -> dict[str, Any]:
    return request(method, url, idempotency_key=KEY, **words)


def requests_in_flight() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "http request"]


def test_json_with_the_key(server: Server) -> None:
    assert send(server.url + "/hook", json={"é": [1, "\ud800"]}) == {
        "status": 200,
        "content_type": "text/plain",
        "body": "well",
        "cut": False,
    }
    [(method, path, headers, body)] = server.seen
    assert (method, path) == ("POST", "/hook")
    assert (headers["Idempotency-Key"], headers["Content-Type"]) == (KEY, "application/json")
    assert json.loads(body) == {"é": [1, "\ud800"]}


def test_text_and_own_headers(server: Server) -> None:
    send(server.url, body="naïve", headers={"content-type": "text/x", "IDEMPOTENCY-KEY": "own", "X-A": "b"})
    headers = {name.lower(): value for name, value in server.seen[0][2].items()}
    assert (headers["content-type"], headers["idempotency-key"], headers["x-a"]) == ("text/x", "own", "b")
    assert server.seen[0][3] == "naïve".encode()


@pytest.mark.parametrize("method", ["get", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_methods(server: Server, method: str) -> None:
    assert send(server.url, method)["status"] == 200
    assert server.seen[0][0] == method.upper()


@pytest.mark.parametrize("status", [400, 404, 409, 500, 503])
def test_status_that_is_no_success(server: Server, status: int) -> None:
    server.answers["/secret?token=1"] = (status, {}, b"why it did not\0 work" + b"." * 1000)
    with pytest.raises(RequestFailed) as caught:
        send(server.url + "/secret?token=1")
    assert caught.value.status == status
    assert str(caught.value).startswith(f"POST {server.url} was answered with status {status}: why it did not\ufffd work...")
    assert len(str(caught.value)) < 600
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_redirects_are_not_followed(server: Server) -> None:
    server.answers["/"] = (302, {"Location": "file:///etc/passwd"}, b"")
    with pytest.raises(RequestFailed, match="status 302, a redirect to file:///etc/passwd; redirects are not followed"):
        send(server.url + "/")
    assert len(server.seen) == 1


def test_long_answer_is_cut_and_says_so(server: Server) -> None:
    server.answers["/"] = (200, {}, b"x" * 50_000_000)
    answer = send(server.url + "/")
    assert (len(answer["body"]), answer["cut"]) == (64 * 1024, True)


def test_answer_that_is_not_utf8(server: Server) -> None:
    server.answers["/"] = (200, {"Content-Type": "text/plain; charset=rot13"}, b"a\xffb\x00c")
    assert send(server.url + "/")["body"] == "a\ufffdb\ufffdc"


def test_compressed_answer_is_not_unpacked(server: Server) -> None:
    server.answers["/"] = (200, {"Content-Encoding": "gzip"}, gzip.compress(b"x" * 10_000_000))
    assert send(server.url + "/")["body"] == "(not shown: compressed by gzip)"
    assert server.seen[0][2]["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"]
)
def test_time_is_bounded_as_a_whole(raw: Serve, start: bytes) -> None:
    def work(connection: socket.socket) -> None:
        connection.sendall(start)
        if not start:
            while connection.recv(1000):  # says nothing until the client goes
                pass
        while True:
            connection.sendall(b"x" if start.endswith(b"\r\n\r\n") else b"X: y\r\n")
            time.sleep(0.02)

    url = raw(work)
    with Stopwatch() as watch, pytest.raises(RequestFailed, match=rf"^POST {url} had no complete answer within 0\.4 s$"):
        send(url, timeout=0.4)
    assert watch.seconds < 5
    for thread in requests_in_flight():
        thread.join(30)
    assert requests_in_flight() == []


def test_nothing_is_sent_after_the_time_is_over(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = threading.Event()
    real = socket.getaddrinfo

    def slow(*args: Any, **words: Any) -> Any:
        looked_up.wait(60)
        return real(*args, **words)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    with pytest.raises(RequestFailed, match="no complete answer"):
        send(server.url, timeout=0.2)
    looked_up.set()
    for thread in requests_in_flight():
        thread.join(30)
    assert requests_in_flight() == []
    assert server.seen == []


def test_signal_handlers_exception_is_let_through_at_once(raw: Serve) -> None:
    asked = threading.Event()

    def work(connection: socket.socket) -> None:
        connection.recv(1000)
        asked.set()
        connection.recv(1000)  # until the client goes

    raised, main = threading.Event(), threading.get_ident()

    def handler(number: int, frame: FrameType | None) -> None:
        if not raised.is_set():
            raised.set()
            raise SystemExit(1)

    def interrupt() -> None:
        asked.wait(60)
        while not raised.wait(0.2):  # one that comes just before a system call is seen only when that returns
            signal.pthread_kill(main, signal.SIGUSR1)

    before, begun, thread = signal.signal(signal.SIGUSR1, handler), time.monotonic(), threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(SystemExit):
            send(raw(work), timeout=90)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - begun < 60


def test_connection_that_fails_is_readable(raw: Serve) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # so that nobody else can listen there
        for url, why in (
            (f"http://127.0.0.1:{unused.getsockname()[1]}", "Connection refused"),
            (raw(lambda connection: connection.recv(1000)), "Server disconnected without sending a response"),
            (raw(lambda connection: connection.sendall(b"nonsense\r\n\r\n")), "illegal status line"),
        ):
            with pytest.raises(RequestFailed, match=why) as caught:
                send(url)
            assert str(caught.value).startswith(f"POST {url} failed: ")
            assert caught.value.status is None


@pytest.mark.parametrize(
    ("method", "url", "words", "sentence"),
    [
        ("FETCH", "http://h/", {}, "method must be one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        (None, "http://h/", {}, "method must be one of GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        ("GET", 5, {}, "url must be a string, not int"),
        ("GET", "ftp://h/", {}, "url must begin with http:// or https://"),
        ("GET", "h/path", {}, "url must begin with http:// or https://"),
        ("GET", "http:///path", {}, "url names no host; write it as https://host/path"),
        ("GET", "http://h:99999/", {}, "url names the port 99999; a port lies between 1 and 65535"),
        ("GET", "http://h:x/", {}, "url is not an address: Invalid port: 'x'"),
        ("GET", "http://..h/", {}, "url is not an address: "),
        ("GET", "http://xn--/", {}, "url is not an address: "),
        ("GET", "http://h/\0", {}, "url is not an address: "),
        ("GET", "http://h/\ud800", {}, "url is not an address: "),
        ("GET", "http://h/", {"json": 1, "body": "1"}, "json and body are both given; leave one out"),
        ("GET", "http://h/", {"json": float("nan")}, "json cannot be written as JSON: "),
        ("GET", "http://h/", {"json": {1, 2}}, "json cannot be written as JSON: "),
        ("GET", "http://h/", {"body": {}}, "body must be a string, not dict; for a value write json"),
        ("GET", "http://h/", {"body": "\ud800"}, "body contains half a character"),
        ("GET", "http://h/", {"headers": []}, "headers must be a table of names and strings, not list"),
        ("GET", "http://h/", {"headers": {"a b": "c"}}, "headers has the name 'a b'; a name has letters, digits and dashes only"),
        ("GET", "http://h/", {"headers": {"a": "b\r\nc: d"}}, "headers['a'] must be a string of printable ASCII characters"),
        ("GET", "http://h/", {"headers": {"a": 1}}, "headers['a'] must be a string of printable ASCII characters"),
        ("GET", "http://h/", {"timeout": 0}, "timeout must be a number of seconds above 0"),
        ("GET", "http://h/", {"timeout": float("inf")}, "timeout must be a number of seconds above 0"),
        ("GET", "http://h/", {"timeout": "30"}, "timeout must be a number of seconds above 0"),
        ("GET", "http://h/", {"timeout": True}, "timeout must be a number of seconds above 0"),
    ],
)
def test_what_cannot_be_sent_is_said_in_one_sentence(method: object, url: object, words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadRequest) as caught:
        request(method, url, idempotency_key=KEY, **words)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_key_must_fit_into_a_header() -> None:
    for key in ("", "a\nb", "é"):
        with pytest.raises(BadRequest, match="idempotency_key must be printable ASCII"):
            request("GET", "http://h/", idempotency_key=key)
