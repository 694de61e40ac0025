"""Values between Python and JSON: kombu's forms for datetime, date, time, UUID, Decimal and bytes. Light: it loads no Celery."""

from __future__ import annotations

import json
from typing import Any

from kombu.utils.json import dumps, object_hook

from ordering.model import Json

PLAIN = frozenset((str, int, float, bool, type(None)))


def to_json(field: str, value: Any) -> Json:
    """`value` as JSON, with kombu's forms for datetime, UUID, Decimal and bytes. Raises TypeError naming `field`."""
    try:
        written = dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(f"The {field} cannot be stored as JSON: {error}") from None
    return json.loads(written)


def from_json(value: Json) -> Any:
    """What `to_json` was given, with its types. What only looks like such a form stays the object that it is."""
    if not value or (type(value) is list and all(type(each) in PLAIN for each in value)):
        return value  # most arguments, in a tenth of the time
    return json.loads(json.dumps(value), object_hook=_typed)


def _typed(value: dict[str, Any]) -> Any:
    # Anybody may write such an object by hand, into a fact for example; what it does not mean must not stop the worker.
    try:
        return object_hook(value)
    except Exception:
        return value
