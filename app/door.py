"""What every HTTP request passes first: who is addressed, how large it is, how fast it comes; and the headers of every answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.problem import ENDLESS, HEAD_LIMIT, TOO_LONG, Answering, Refused
from workers.loopback import is_loopback

BODY_LIMIT = 2**20  # bytes
BULK_LIMIT = 16 * 2**20  # bytes, of a list of items
HELD_LIMIT = 128 * 2**20  # bytes of bodies that are in memory at a time
BODY_SECONDS = 30.0  # for a whole body
DRAIN_LIMIT, DRAIN_SECONDS, DRAIN_PAUSE = 64 * 2**20, 5.0, 1.0  # of a refused body: bytes, seconds in all, seconds of silence
ONCE = ("Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Origin")  # headers of which one alone can be meant
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
BODY = "relevo.body"  # where the scope has the body, whole
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


class Door:
    """Refuses what a page of another site could send, what is too large and what is too slow; reads the body for those behind it.

    only_loopback: only names of this machine are accepted as Host, which a page that resolves its own name to 127.0.0.1
    cannot say. stop: ends what would go on for ever, called when the server is told to stop.
    """

    def __init__(self, app: ASGIApp, answering: Answering, *, only_loopback: bool, stop: Callable[[], None] = lambda: None) -> None:
        self._app = app
        self._answering = answering
        self.stop = stop
        self._only_loopback = only_loopback
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        size, headers = 0, Headers(scope=scope)
        if scope["method"] == "HEAD" and scope["path"] != ENDLESS:
            scope = {**scope, "method": "GET"}  # the connection itself keeps the body of the answer back
        try:
            self._check(scope, headers)
            if scope["method"] in WRITES:
                size = self._reserve(scope["path"], headers)
                scope[BODY] = await _body(receive, size)
        except Refused as refused:
            self._held -= size
            # Closing a connection with something unread takes the answer away from its client, and what is left of the body
            # would be taken for the next request.
            if not await _drained(headers, receive):
                refused.headers = {**(refused.headers or {}), "Connection": "close"}
            await self._answering(self._request(scope), refused)(scope, receive, guarded)
            return
        except BaseException:
            self._held -= size
            raise
        try:
            await self._app(scope, receive, guarded)
        except Exception as error:  # answered and logged already, unless it is one of the framework's own
            if not started:
                await self._answering(self._request(scope), error)(scope, receive, guarded)
        finally:
            self._held -= size

    def _request(self, scope: Scope) -> Request:
        """The request for an answer that the application itself did not give: it is not in the scope yet."""
        return Request({**scope, "app": self._app})

    def _check(self, scope: Scope, headers: Headers) -> None:
        method, path = scope["method"], scope["path"]
        address: bytes = scope["raw_path"] + scope["query_string"]
        if len(address) + sum(len(name) + len(value) for name, value in headers.raw) > HEAD_LIMIT:
            raise Refused(431, TOO_LONG)
        try:
            unquote_to_bytes(address).decode()
        except UnicodeDecodeError:
            raise Refused(400, "The address is not UTF-8; percent-encode the text that it holds as UTF-8.") from None
        for name in ONCE:
            if (times := len(headers.getlist(name))) > 1:
                raise Refused(400, f"{name}: is given {times} times; give it once.")
        host = headers.get("host", "")
        if self._only_loopback and not is_loopback(_hostname(host)):
            raise Refused(421, f"The server answers to localhost only and not to {host[:100]!r}; a tokens file lets it serve other names.")
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != host.lower():
            raise Refused(403, "The request comes from a page of another site, and none is allowed to call this server.")
        if method in WRITES:
            self._check_write(path, headers)
        if "content-encoding" in headers:
            raise Refused(415, "Content-Encoding: is not supported; send the body as it is.")

    def _check_write(self, path: str, headers: Headers) -> None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if path.startswith("/api/"):
            if kind != "application/json":
                raise Refused(415, "Content-Type: must be application/json, also where there is no body.")
            if "relevo=" in headers.get("cookie", "") and "authorization" not in headers and not _from_here(headers):
                raise Refused(403, "A call with the login's cookie must say which page it comes from (Origin); programs send their token.")
            return
        if kind != "application/x-www-form-urlencoded":
            raise Refused(415, "Content-Type: must be application/x-www-form-urlencoded; programs use the routes below /api.")
        # Any page may send a form without asking first, so a form must say that it comes from a page of ours.
        if not _from_here(headers):
            raise Refused(403, "The form does not say which page it comes from (Origin), so it is not taken.")

    def _reserve(self, path: str, headers: Headers) -> int:
        """How many bytes the body may have; they count as held from now on."""
        limit = BULK_LIMIT if path.startswith("/api/") and path.endswith("/items") else BODY_LIMIT
        told = headers.get("content-length")
        size = int(told) if told is not None and told.isascii() and told.isdigit() and len(told) < 20 else limit
        if told is None and "transfer-encoding" not in headers:
            size = 0
        if size > limit:
            raise Refused(413, f"The body has more than {limit} bytes; send less at a time.")
        if self._held + size > HELD_LIMIT:
            raise Refused(503, "The server is reading too many large requests; try again.")
        self._held += size
        return size


async def _body(receive: Receive, limit: int) -> bytes:
    chunks = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    raise Refused(400, "The client went away.")
                chunks += message.get("body", b"")
                if len(chunks) > limit:
                    raise Refused(413, f"The body has more than {limit} bytes; send less at a time.")
                if not message.get("more_body", False):
                    return bytes(chunks)
    except TimeoutError:
        raise Refused(408, f"The body was not here within {BODY_SECONDS:g} s.") from None


async def _drained(headers: Headers, receive: Receive) -> bool:
    """Read what is left of a refused body and forget it; whether all of it came."""
    if "expect" in headers:
        return False  # its client waits for our word before it sends the body
    size = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            while size < DRAIN_LIMIT:
                async with asyncio.timeout(DRAIN_PAUSE):
                    message = await receive()
                size += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return bool(message["type"] == "http.request")
    return False


def _from_here(headers: Headers) -> bool:
    """Whether a browser says that the request comes from a page of ours; a foreign Origin was refused before."""
    return "origin" in headers or headers.get("sec-fetch-site") == "same-origin"


def _netloc(origin: str) -> str:
    """Host and port of an Origin header, or nothing if it is no URL (a page of no site says `null`)."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
