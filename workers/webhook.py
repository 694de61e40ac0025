"""The body of the built-in task `http`: one request with an Idempotency-Key, bounded in time and in what is kept of the answer."""

import functools
import json as jsonlib
import math
import re
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

from ordering.text import clean
from workers.plain import PlainError

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
TIMEOUT_SECONDS = 30.0
KEEP_BYTES = 64 * 1024
EXCERPT_CHARACTERS = 500
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


class BadRequest(PlainError, ValueError):
    """The request as given cannot be sent; one sentence that names the field and the fix."""


class RequestFailed(PlainError):
    """The request got no answer in time, or one whose status is not 2xx.

    `status` is None where there was no answer; `body` holds what was kept of it.
    """

    def __init__(self, reason: str, status: int | None = None, body: str = "") -> None:
        super().__init__(reason, status, body)
        self.reason = reason
        self.status = status
        self.body = body

    def __str__(self) -> str:
        return f"{self.reason}: {self.body[:EXCERPT_CHARACTERS]}" if self.body else self.reason


def request(
    method: object,
    url: object,
    *,
    json: object = None,
    body: object = None,
    headers: object = None,
    timeout: object = TIMEOUT_SECONDS,
    idempotency_key: str,
) -> dict[str, Any]:
    """Send one request and wait for its answer, at most `timeout` seconds in all, name look-up and a dripping answer included.

    `json` is any value that JSON knows, `body` text (UTF-8), at most one of the two; `headers` go on top of the Idempotency-Key. Returns
    status, content_type, body (text, of at most 64 KiB, bytes that are not UTF-8 as U+FFFD) and cut (whether there was more). Redirects
    are not followed: they would lose the method or the key. Raises BadRequest and RequestFailed. Nothing is sent after it has returned.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise BadRequest("timeout must be a number of seconds above 0")
    verb, target = _method(method), _url(url)
    content, kind = _content(json, body)
    sent_headers = httpx.Headers({"Accept-Encoding": "identity", "Idempotency-Key": _key(idempotency_key), **kind})
    sent_headers.update(_headers({} if headers is None else headers))
    exchange = _Exchange(httpx.Request(verb, target, headers=sent_headers, content=content), float(timeout))
    answer = exchange.run()
    if not 200 <= answer.status < 300:
        reason = f"{exchange.what} was answered with status {answer.status}"
        if answer.location:
            reason += f", a redirect to {answer.location}; redirects are not followed, so give that address"
        raise RequestFailed(reason, answer.status, answer.body)
    return {"status": answer.status, "content_type": answer.content_type, "body": answer.body, "cut": answer.cut}


@dataclass(frozen=True)
class _Answer:
    status: int
    content_type: str
    location: str
    body: str
    cut: bool


class _Exchange:
    """One request in a thread of its own, because only so it ends in time: httpx bounds each read, not their sum, nor the name look-up."""

    def __init__(self, request: httpx.Request, timeout: float) -> None:
        self._request = request
        self._timeout = timeout
        port = "" if request.url.port is None else f":{request.url.port}"
        # No more of the address than this: paths, queries and user names of webhooks hold their secrets.
        self.what = f"{request.method} {request.url.scheme}://{request.url.host}{port}"
        self._done = threading.Event()
        self._late = False
        self._socket: socket.socket | None = None
        self._answer: _Answer | None = None
        self._error: Exception | None = None

    def run(self) -> _Answer:
        threading.Thread(target=self._work, name="http request", daemon=True).start()
        in_time = False
        try:
            in_time = self._done.wait(self._timeout)
        finally:
            self._late = True
            if not in_time and self._socket is not None:
                with suppress(OSError):
                    # Not the override in SSLSocket, which is not safe beside a read in another thread.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        # Not what the thread says later: a shut socket looks like the end of an answer.
        if in_time and self._answer is not None:
            return self._answer
        match self._error if in_time else None:
            case None | httpx.TimeoutException():
                raise RequestFailed(f"{self.what} had no complete answer within {self._timeout:g} s")
            case httpx.TransportError() as error:
                raise RequestFailed(f"{self.what} failed: {_readable(error)}") from error
            case error:
                raise error

    def _work(self) -> None:
        try:
            self._request.extensions["trace"] = self._trace
            self._request.extensions["timeout"] = httpx.Timeout(self._timeout).as_dict()
            with httpx.Client(verify=_tls(), follow_redirects=False) as client:
                response = client.send(self._request, stream=True)
                try:
                    self._answer = _answer(response)
                finally:
                    response.close()
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Called by httpx at each step: notes the socket, and stops a request that comes too late before it is sent."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._socket = info["return_value"].get_extra_info("socket")
            if self._late:
                info["return_value"].close()
                raise _TooLate
        elif self._late and event.endswith(".started") and "close" not in event:  # closing goes on
            raise _TooLate


class _TooLate(Exception):
    """The time is over and the caller gone."""


@functools.cache
def _tls() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # reads the certificates: 20 ms


def _answer(response: httpx.Response) -> _Answer:
    data = b""
    # Raw, not decoded: a few compressed KiB can unpack to gigabytes. The request says that it takes no compression.
    for piece in response.iter_raw():
        data += piece
        if len(data) > KEEP_BYTES:
            break
    encoding = response.headers.get("content-encoding", "identity")
    text = data[:KEEP_BYTES].decode("utf-8", "replace") if encoding == "identity" else f"(not shown: compressed by {encoding})"
    content_type, location = response.headers.get("content-type", ""), response.headers.get("location", "")
    return _Answer(response.status_code, clean(content_type), clean(location), clean(text), len(data) > KEEP_BYTES)


def _method(method: object) -> str:
    if isinstance(method, str) and method.upper() in METHODS:
        return method.upper()
    raise BadRequest(f"method must be one of {', '.join(METHODS)}")


def _url(url: object) -> httpx.URL:
    if not isinstance(url, str):
        raise BadRequest(f"url must be a string, not {type(url).__name__}")
    try:
        parsed = httpx.URL(url)
        host = parsed.host
        host.encode("idna")  # what the look-up does with it
    except (httpx.InvalidURL, ValueError) as error:
        raise BadRequest(f"url is not an address: {clean(str(error))}") from error
    if parsed.scheme not in ("http", "https"):
        raise BadRequest("url must begin with http:// or https://")
    if not host:
        raise BadRequest("url names no host; write it as https://host/path")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise BadRequest(f"url names the port {parsed.port}; a port lies between 1 and 65535")
    return parsed


def _content(json: object, body: object) -> tuple[bytes | None, dict[str, str]]:
    if json is not None and body is not None:
        raise BadRequest("json and body are both given; leave one out")
    if json is not None:
        try:
            return jsonlib.dumps(json, allow_nan=False).encode(), {"Content-Type": "application/json"}
        except (TypeError, ValueError, RecursionError) as error:
            raise BadRequest(f"json cannot be written as JSON: {error}") from error
    if body is None:
        return None, {}
    if not isinstance(body, str):
        raise BadRequest(f"body must be a string, not {type(body).__name__}; for a value write json")
    try:
        return body.encode(), {"Content-Type": "text/plain; charset=utf-8"}
    except UnicodeEncodeError:
        raise BadRequest("body contains half a character (a lone surrogate), which has no bytes; remove it") from None


def _key(key: str) -> str:
    if not key or not _HEADER_VALUE.fullmatch(key):
        raise BadRequest("idempotency_key must be printable ASCII characters, at least one")
    return key


def _headers(headers: object) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise BadRequest(f"headers must be a table of names and strings, not {type(headers).__name__}")
    for name, value in headers.items():
        if not isinstance(name, str) or not _HEADER_NAME.fullmatch(name):
            raise BadRequest(f"headers has the name {clean(str(name))!r}; a name has letters, digits and dashes only")
        if not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise BadRequest(f"headers[{name!r}] must be a string of printable ASCII characters")
    return dict(headers)


def _readable(error: Exception) -> str:
    """The reason without the bracketed error number in front."""
    return clean(re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".") or type(error).__name__)
