"""What an HTTP call that did not work is answered: application/problem+json (RFC 9457) with a stable type."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError, DBAPIError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from app.fields import BadInput
from ordering import db, errors, position

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
PREFIX = "urn:relevo:problem:"
HEAD_LIMIT = 2**15  # bytes of a request's address and headers, also where they come in one piece
TOO_LONG = f"The address and the headers have more than {HEAD_LIMIT} bytes; send less."
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ENDLESS = "/api/events/stream"  # which has no end: nobody asks for its head alone, by HEAD
RETRY_AFTER = 2  # seconds


class Kind(NamedTuple):
    """A kind of problem: the last word of its type, its title and its HTTP status."""

    word: str
    title: str
    status: int


INVALID = Kind("invalid", "A value cannot be accepted", 422)
UNREACHABLE = Kind("database-unreachable", "Postgres does not answer", 503)
BUSY = Kind("busy", "The server or the plan is busy", 503)
DEFECT = Kind("defect", "Relevo has a defect", 500)
#: By the class of the refusal; the nearest base class counts.
KINDS: Mapping[type[Exception], Kind] = {
    errors.RelevoError: Kind("refused", "Refused", 400),
    errors.Invalid: INVALID,
    BadInput: INVALID,
    errors.UnknownTask: Kind("unknown-task", "No worker has offered this task", 422),
    errors.UnknownPlan: Kind("unknown-plan", "There is no such plan", 404),
    errors.UnknownEvent: Kind("unknown-event", "There is no such event", 404),
    errors.NotUndoable: Kind("not-undoable", "It cannot be undone", 409),
    errors.UnknownItem: Kind("unknown-item", "There is no such item", 404),
    errors.PlanExists: Kind("plan-exists", "The name is taken", 409),
    errors.PlanBlocked: Kind("plan-blocked", "The plan has unresolved items", 409),
    errors.NotStarted: Kind("not-started", "The plan is not running", 409),
    errors.NotMovable: Kind("not-movable", "The item cannot be moved", 409),
    errors.NotInLine: Kind("not-in-line", "The neighbour is not in the line", 409),
    errors.StaleOrder: Kind("stale-order", "The order has changed", 409),
    errors.NotAllowed: Kind("not-allowed", "The item's state does not allow this", 409),
    errors.KeyConflict: Kind("key-conflict", "The key was used for another item", 409),
    errors.CallConflict: Kind("call-conflict", "The key was used for another call", 409),
    errors.MayStillRun: Kind("may-still-run", "Its process may still live", 409),
    errors.NotDead: Kind("not-dead", "The item is no dead letter", 409),
    errors.NotStream: Kind("not-a-stream", "The plan is no stream", 409),
    errors.NotAStream: Kind("not-a-stream", "The plan is no stream", 409),
    errors.UnknownGroup: Kind("unknown-group", "There is no such group", 404),
    errors.UnknownFact: Kind("unknown-fact", "There is no such fact", 404),
    errors.UnknownSubscription: Kind("unknown-subscription", "There is no such subscription", 404),
    errors.FactKeyConflict: Kind("key-conflict", "The key was used for another fact", 409),
    errors.UnknownSchedule: Kind("unknown-schedule", "There is no such schedule", 404),
    errors.ScheduleExists: Kind("schedule-exists", "The name is taken", 409),
    errors.EntryOut: Kind("entry-out", "The entry has an unsettled item", 409),
    position.NoRoom: Kind("no-room", "There is no room at this place", 409),
    errors.DatabaseUnreachable: UNREACHABLE,
}
#: Problems of the call itself, by their HTTP status.
OF_STATUS: Mapping[int, Kind] = {
    400: Kind("bad-request", "The request cannot be read", 400),
    401: Kind("unauthenticated", "A token is needed", 401),
    403: Kind("forbidden", "This is not allowed", 403),
    404: Kind("not-found", "There is nothing at this address", 404),
    405: Kind("method-not-allowed", "This method is not allowed here", 405),
    408: Kind("too-slow", "The request did not come in time", 408),
    413: Kind("too-large", "The request is too large", 413),
    415: Kind("wrong-content-type", "The content type cannot be read", 415),
    429: Kind("too-many", "Too many calls", 429),
    421: Kind("wrong-host", "This host is not served here", 421),
    431: Kind("headers-too-large", "The address and the headers are too large", 431),
    503: BUSY,
}


class Refused(HTTPException):
    """The call itself is refused, with the status of OF_STATUS and one sentence."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, sentence, headers)


def answer(kind: Kind, sentence: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    """The response for one problem; `more` are further members of its object."""
    told = {"type": PREFIX + kind.word, "title": kind.title, "status": kind.status, "detail": sentence, **more}
    retry = {"Retry-After": str(RETRY_AFTER)} if kind.status == 503 else {}
    # Half a surrogate pair, quoted from what came in, becomes the escape that JSON has for it.
    body = json.dumps(told, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
    return Response(body, kind.status, {**retry, **(headers or {})}, MEDIA_TYPE)


class Answering(Protocol):
    """Answers an error of one request: as a problem, or as a page where a browser asked for one."""

    def __call__(self, request: Request, error: Exception) -> Response: ...


class Told(NamedTuple):
    """What is said of an error: its kind, one sentence, headers, and further members of the problem's object."""

    kind: Kind
    sentence: str
    headers: Mapping[str, str]
    more: Mapping[str, Any]


def of(error: Exception) -> Response:
    """The response for an exception of any kind."""
    said = told(error)
    return answer(said.kind, said.sentence, said.headers, **said.more)


def told(error: Exception) -> Told:
    """What is said of an exception of any kind; a defect is logged."""
    match error:
        case errors.RelevoError():
            kind = next(KINDS[each] for each in type(error).__mro__ if each in KINDS)
            return Told(kind, str(error), {}, _members(error))
        case RequestValidationError():
            first = error.errors()[0]
            field = ".".join(str(each) for each in first["loc"][1:]) or str(first["loc"][0])
            return Told(INVALID, f"{field}: {said(first)}.", {}, {"field": field})
        case HTTPException():
            kind = OF_STATUS.get(error.status_code, Kind("refused", "Refused", error.status_code))
            return Told(kind, error.detail if isinstance(error, Refused) else f"{kind.title}.", error.headers or {}, {})
        case DBAPIError():
            return _database(error)
        case _:
            logger.error("A call failed by a defect.", exc_info=error)
            return Told(DEFECT, f"Relevo has a defect: {type(error).__name__}; the log of the server has the details.", {}, {})


SAID = {
    "missing": "is missing",
    "extra_forbidden": "is not a field of this call",
    "model_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a text",
    "string_unicode": "holds half a surrogate pair, which is no character; remove it",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "is out of range",
    "int_from_float": "must be a whole number",
    "dict_type": "must be an object",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "too_short": "must have at least {min_length}",
    "too_long": "must have at most {max_length}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
}


def said(error: Mapping[str, Any]) -> str:
    """What is wrong with a field, for one of pydantic's errors; without a full stop."""
    kind, message = error["type"], str(error["msg"])
    if kind in SAID:
        return SAID[kind].format_map(error.get("ctx", {}))
    return message.removeprefix("Value error, ").removeprefix("Input ").rstrip(".")


def _members(error: errors.RelevoError) -> dict[str, Any]:
    match error:
        case errors.Invalid():
            return {"field": error.field}
        case errors.UnknownTask():
            return {"field": "task"}
        case errors.PlanBlocked():
            return {"items": [{"id": item_id, "title": title, "state": state} for item_id, title, state in error.items]}
        case errors.StaleOrder():
            return {"order": error.order}
        case errors.NotAllowed():
            return {"state": error.state}
        case errors.KeyConflict():
            return {"field": "key", "item": error.item_id}
        case errors.FactKeyConflict():
            return {"field": "key"}
        case errors.UnknownGroup():
            return {"field": "group"}
        case errors.CallConflict():
            return {"field": "Idempotency-Key"}
        case _:
            return {}


def _database(error: DBAPIError) -> Told:
    state, said = db.sqlstate(error), db.said(error)
    if db.is_disconnect(error) or state[:2] in ("28", "3D"):
        return Told(UNREACHABLE, f"Postgres is unreachable: {said}", {}, {})
    if state in ("3F000", "42P01", "42703"):
        return Told(UNREACHABLE, "The database has no current schema of Relevo; run `relevo migrate`.", {}, {})
    if state[:2] == "22" or isinstance(error, DataError):  # what no check named before
        return Told(INVALID, f"A value cannot be stored: {said}", {}, {"field": ""})
    if state in ("55P03", "57014", *db.RETRIED):
        return Told(BUSY, "Somebody else holds what this call needs, or it took too long; nothing was changed, try again.", {}, {})
    if db.may_pass(error):
        return Told(BUSY, f"Postgres refused: {said} (SQLSTATE {state or 'none'}); nothing was changed.", {}, {})
    logger.error("A statement failed by a defect.", exc_info=error)
    return Told(DEFECT, f"Relevo has a defect (SQLSTATE {state}); nothing was changed, and the log of the server has the details.", {}, {})


def allowed(request: Request) -> list[str]:
    """The methods that the address of the request has; the framework names those of the first route alone."""
    routes = request.app.router.routes
    found = [each for each in METHODS if any(route.matches({**request.scope, "method": each})[0] is Match.FULL for route in routes)]
    return ["GET", "HEAD", *found[1:]] if "GET" in found and request.scope["path"] != ENDLESS else found


def install(app: FastAPI, answering: Answering) -> None:
    """Answer every error of `app` by `answering`."""

    async def handler(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException) and error.status_code == 405:
            methods = ", ".join(allowed(request))
            error = Refused(405, f"This address has no {request.method[:40]}; it has {methods}.", {"Allow": methods})
        return answering(request, error)

    for kind in (errors.RelevoError, DBAPIError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, handler)
