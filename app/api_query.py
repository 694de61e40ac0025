"""The parameters in the address of a call: each one that its route has, and once. A misspelt one must not act as none."""

from __future__ import annotations

from collections import Counter

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import ParamTypes
from fastapi.routing import APIRoute

from ordering.errors import Invalid


def check(request: Request) -> None:
    """Raise Invalid naming the first parameter that the route of the request has not, or that is given more than once."""
    given = Counter(name for name, _value in request.query_params.multi_items())
    if not given:
        return
    known = _known(request.scope["route"])
    for name, times in given.items():
        shown = name[:80] or "an empty name"
        if name not in known:
            raise Invalid(shown, f"is no parameter of this call; it has {', '.join(known) or 'none'}.")
        if times > 1:
            raise Invalid(shown, f"is given {times} times; give it once.")


def _known(route: APIRoute) -> list[str]:
    return [each.alias for each in get_flat_params(route.dependant) if getattr(each.field_info, "in_", None) is ParamTypes.query]
