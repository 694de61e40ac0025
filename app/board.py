"""What every page of the board has: the switch of the language."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from app import language, page
from app.form import Fields
from ordering.errors import Invalid

router = APIRouter(include_in_schema=False)
A_YEAR = 365 * 86_400  # seconds


@router.post("/language")
async def choose_language(form: Fields) -> Response:
    """Remember the language in a cookie, and go back. Nobody needs to be known for it."""
    chosen = form.text("lang")
    if chosen not in language.NAMES:
        raise Invalid("lang", f"{chosen[:40]!r} is none; use one of {', '.join(language.NAMES)}.")
    answer = page.to(form.back("/"))
    answer.set_cookie(language.COOKIE, chosen, max_age=A_YEAR, httponly=True, samesite="lax")
    return answer
