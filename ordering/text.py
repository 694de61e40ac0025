"""Text that Postgres can store: refused at the door, replaced visibly in what a body produced."""

from __future__ import annotations

import json
import re
import unicodedata

from ordering.errors import Invalid
from ordering.model import Json

# U+0000 is refused by Postgres in text and jsonb; lone surrogates are no characters at all.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NUL_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_written = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode  # json.dumps would make a new encoder for each value
_VISIBLE = frozenset("LNPS")  # letters, numbers, punctuation, symbols (Unicode major categories)
REPLACEMENT = "\ufffd"
ERROR_LIMIT = 20_000  # characters of an error text that are kept
ARGS_LIMIT = 1_000_000  # bytes of arguments as JSON, per item
DEPTH_LIMIT = 100  # levels of lists and objects in arguments: whoever reads them back recurses
RESULT_LIMIT = 1_000_000  # bytes of a result as JSON


def checked(field: str, value: str, limit: int) -> str:
    """Return `value` if Postgres can store it and it has at most `limit` characters; else raise Invalid naming `field`."""
    if _UNSTORABLE.search(value):
        raise Invalid(field, "holds a NUL character or half a surrogate pair, which cannot be stored; remove it.")
    if len(value) > limit:
        raise Invalid(field, f"has {len(value)} characters; at most {limit} are allowed.")
    return value


def visible(field: str, value: str, limit: int) -> str:
    """As `checked`; a non-empty value must also hold something that can be seen."""
    checked(field, value, limit)
    # Most begin with a letter or a number: the first test spares a bulk add the second.
    if value and not value[0].isalnum() and not any(unicodedata.category(char)[0] in _VISIBLE for char in value):
        raise Invalid(field, "holds only invisible characters; write something that can be seen.")
    return value


def checked_json(field: str, value: Json, limit: int) -> str:
    """Return `value` as JSON text that jsonb accepts; raise Invalid naming `field` if it is too large or cannot be stored."""
    if value in ([], {}):
        return "[]" if isinstance(value, list) else "{}"  # most arguments, in a fifth of the time
    try:
        written = _written(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(field, f"is not JSON ({error}).") from None
    # No character takes more than 4 bytes, so a short text need not be encoded to be measured.
    if len(written) > limit or (4 * len(written) > limit and len(written.encode("utf-8", "replace")) > limit):
        raise Invalid(field, f"is larger than {limit} bytes as JSON; store it elsewhere and pass its name.")
    if _UNSTORABLE.search(written) or ("\\u0000" in written and _NUL_ESCAPE.search(written)):
        raise Invalid(field, "holds a NUL character or half a surrogate pair, which cannot be stored; remove it.")
    # As many brackets as levels at the least, so most need not be walked through.
    if written.count("[") + written.count("{") > DEPTH_LIMIT and _depth(value) > DEPTH_LIMIT:
        raise Invalid(field, f"is nested more than {DEPTH_LIMIT} levels deep; make it flatter.")
    return written


def clean(value: str) -> str:
    """`value` with U+FFFD for each NUL and lone surrogate, so that Postgres and UTF-8 take it."""
    return _UNSTORABLE.sub(REPLACEMENT, value)


def _depth(value: Json) -> int:
    depth, level = 0, [value]
    while level := [each for each in level if isinstance(each, (list, tuple, dict))]:
        depth += 1
        level = [inner for each in level for inner in (each.values() if isinstance(each, dict) else each)]
    return depth


def storable(value: str, limit: int = ERROR_LIMIT) -> str:
    """`value` with unstorable characters replaced by U+FFFD, cut in the middle to about `limit` characters; the cut says so."""
    if len(value) > limit:
        half = limit // 2
        value = f"{value[:half]}\n… {len(value) - 2 * half} characters left out …\n{value[-half:]}"
    return clean(value)


def storable_json(value: Json) -> Json:
    """`value` with unstorable characters in strings and keys replaced by U+FFFD."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {storable_json(key): storable_json(inner) for key, inner in value.items()}
        case list():
            return [storable_json(inner) for inner in value]
        case _:
            return value
