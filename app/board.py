"""What every page of the board has: the switch of the language, and undo."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response
from sqlalchemy import Connection

from app import language, page
from app.act import act
from app.api_call import Calling
from app.form import Fields, whole
from app.schemas import BIGGEST_ID
from ordering import undo
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


@router.post("/undo")
def undo_(request: Request, call: Calling, form: Fields) -> Response:
    """Undo the events that the form names, all or none."""

    def verb(tx: Connection) -> None:
        events = [whole("event", each, 1, BIGGEST_ID) for each in form.texts("event")]
        if not events:
            raise Invalid("event", "is missing; say what to undo.")
        undo.undo_many(tx, events, actor=call.actor)

    return act(request, call, form, verb)
