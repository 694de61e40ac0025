"""What a message must look like to be let in, and how a refused one is described. Nothing a message says is trusted."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from workers.message import BODY

#: Longest preview of a refused message, in bytes of UTF-8.
PREVIEW_BYTES = 200

#: Longest id or task name taken over from a refused message, in bytes of UTF-8.
NAME_BYTES = 255

_TEXT: tuple[type, ...] = (str, type(None))
_NUMBER: tuple[type, ...] = (int, type(None))

#: The headers of protocol 2 that Celery reads, and what each may hold. Celery itself checks none of them and fails
#: later, in the parent process, in a child or while reporting.
_HEADERS: dict[str, tuple[type, ...]] = {
    "id": (str,),
    "task": (str,),
    "lang": _TEXT,
    "root_id": _TEXT,
    "parent_id": _TEXT,
    "group": _TEXT,
    "group_index": _NUMBER,
    "shadow": _TEXT,
    "eta": (type(None),),  # a delay would be held in the worker; delays live in Postgres
    "expires": (type(None),),
    "retries": _NUMBER,
    "timelimit": (list, tuple, type(None)),
    "argsrepr": _TEXT,
    "kwargsrepr": _TEXT,
    "origin": _TEXT,
    "ignore_result": (bool, int, type(None)),
    "replaced_task_nesting": _NUMBER,
    "stamped_headers": (type(None),),
    "stamps": (dict, type(None)),
}


class Refusal(NamedTuple):
    """One refused message, ready to be recorded: every text is bounded and printable."""

    reason: str
    body_size: int
    preview: str
    task_id: str | None
    task_name: str | None


def refusal(reason: str, body: object, headers: object = None) -> Refusal:
    """Describe a refused message; `body` and `headers` may be of any type."""
    raw = _bytes(body)
    said = headers if isinstance(headers, dict) else {}
    return Refusal(reason, len(raw), printable(raw, PREVIEW_BYTES), _name(said.get("id")), _name(said.get("task")))


def fault(headers: object, properties: object, content_type: object, content_encoding: object) -> str | None:
    """Why the frame of a message is not one of ours, or None. `headers` and `properties` may be of any type."""
    if not isinstance(headers, dict) or not isinstance(properties, dict):
        return "The headers are not a table."
    if content_type != "application/json":
        return f"The content type is {_shown(content_type)}, not application/json."
    if not isinstance(content_encoding, str) or content_encoding.lower() != "utf-8":
        return f"The content encoding is {_shown(content_encoding)}, not utf-8."
    for name in ("id", "task"):
        if not headers.get(name):
            return f"The header {name} is missing."
    for name, types in _HEADERS.items():
        if not isinstance(headers.get(name), (*types, type(None))):
            return f"The header {name} has a value of the wrong kind: {_shown(headers[name])}."
    limits = headers.get("timelimit")
    if limits and list(limits) != [None, None]:
        return f"The header timelimit sets {_shown(limits)}; limits belong to the task."
    for name in ("correlation_id", "reply_to"):
        if not isinstance(properties.get(name), _TEXT):
            return f"The property {name} has a value of the wrong kind: {_shown(properties[name])}."
    return None


def body_fault(body: object) -> str | None:
    """Why a body is not the empty call that a pointer carries, or None."""
    raw = _bytes(body)
    if raw == BODY:
        return None
    if not raw:
        return "The body is empty."
    try:
        call = json.loads(raw)
    except (ValueError, RecursionError) as error:
        return f"The body cannot be decoded as JSON: {_shown_error(error)}."
    if not (isinstance(call, list) and len(call) == 3 and [type(part) for part in call] == [list, dict, dict]):
        return "The body is not a list of arguments, named arguments and options."
    if any(call[:2]) or any(value is not None for value in call[2].values()):
        return "The body carries arguments or callbacks; a message only points at a dispatch."
    return None


def printable(raw: bytes, limit: int) -> str:
    """The beginning of `raw` as text of at most `limit` bytes of UTF-8, without control, format or broken characters."""
    text = raw[:limit].decode("utf-8", "replace")
    text = "".join(char if char.isprintable() else "\N{MIDDLE DOT}" for char in text)
    return text.encode()[:limit].decode("utf-8", "ignore")


def _bytes(body: object) -> bytes:
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    return b"" if body is None else str(body).encode("utf-8", "backslashreplace")


def _name(value: Any) -> str | None:
    return printable(_bytes(value), NAME_BYTES) if isinstance(value, str) and value else None


def _shown(value: object) -> str:
    return printable(repr(value)[:60].encode("utf-8", "backslashreplace"), 60)


def _shown_error(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return printable(str(error).encode("utf-8", "backslashreplace"), 120)
