"""Signing in on the board: a token becomes a cookie, and signing out takes the cookie away."""

from __future__ import annotations

import asyncio
import logging
import math

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool

from app import form as forms
from app import page
from app.api_call import Server
from app.buckets import Buckets
from app.form import Fields
from app.problem import Refused
from app.tokens import COOKIE, Tokens

logger = logging.getLogger(__name__)
router = APIRouter(include_in_schema=False)
KEPT = 30 * 86_400  # seconds that a browser keeps the cookie
SLOW = 1.0  # seconds that a wrong token waits for its answer
WRONG, WRONG_RATE = 10, 1 / 6  # wrong tokens of one address: at once, and a second after that


def wrong_tokens() -> Buckets:
    """How often an address may be wrong; a right token is never kept waiting for it."""
    return Buckets(WRONG_RATE, WRONG)


@router.get("/login")
async def ask(request: Request, back: str = "/") -> Response:
    """The form; who needs none is sent on."""
    if not isinstance(_server(request).known, Tokens):
        return page.to(_back(back))
    return page.render(request, None, "login.html", back=_back(back))


@router.post("/login")
async def sign_in(request: Request, form: Fields) -> Response:
    """Take the token as a cookie, and go to the page that was asked for."""
    known, back = _server(request).known, _back(form.text("back"))
    if not isinstance(known, Tokens):
        return page.to(back)
    token = form.text("token").strip()
    caller = await run_in_threadpool(known.caller_of, token)
    if caller is None:
        return await _wrong(request, back)
    logger.info("%s signed in from %s", caller.name, request.client.host if request.client else "nowhere")
    answer = page.to(back)
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "").lower() == "https"
    answer.set_cookie(COOKIE, token, max_age=KEPT, path="/", secure=secure, httponly=True, samesite="strict")
    return answer


async def _wrong(request: Request, back: str) -> Response:
    address = request.client.host if request.client else "nowhere"
    wait = request.app.state.wrong_tokens.take(address)
    if wait > 0:
        raise Refused(429, "Too many wrong tokens came from here; wait a moment.", {"Retry-After": str(math.ceil(wait))})
    logger.warning("A wrong token was shown at the login from %s", address)
    await asyncio.sleep(SLOW)
    sentence = "This token is not known; look whether it was copied whole, or ask whoever runs the server for one."
    refused = page.Refusal("The token is not known", sentence, 403, "token", "/login", forms.Form())
    return page.render(request, None, "login.html", 403, back=back, refusal=refused, here="/login")


@router.post("/logout")
async def sign_out(request: Request) -> Response:
    """Forget the cookie."""
    answer = page.to("/login")
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def _server(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


def _back(written: str) -> str:
    local = forms.local(written) or "/"
    return "/" if local.partition("?")[0] in ("/login", "/logout") else local
