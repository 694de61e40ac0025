"""What the description of the API says beside its routes: problems, bodies."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict

from app import api_body, problem

ABOUT = """Plans, items, decisions and facts of a Relevo platform.

Writes are JSON (`Content-Type: application/json`, always). Errors are `application/problem+json` with a stable `type`. Lists come in
pages: `next` is the `cursor` of the following one. A write with an `Idempotency-Key` can be repeated safely.
"""


class Problem(BaseModel):
    """What went wrong, by RFC 9457; further members depend on the type."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str


ALWAYS = (400, 401, 403, 421, 422, 429, 431, 503)
OF_WRITES = (408, 413, 415)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The documented problem responses of a route: those of every call, and the given ones."""
    named = {kind.status: kind.title for kind in problem.KINDS.values()} | {code: kind.title for code, kind in problem.OF_STATUS.items()}
    return {
        code: {
            "description": named.get(code, "Refused"),
            "content": {problem.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
        for code in sorted({*ALWAYS, *statuses})
    }


def install(app: FastAPI) -> None:
    """Let `app` describe itself with the bodies that it reads and the problems that it answers."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            made = get_openapi(title=app.title, version=app.version, description=ABOUT, routes=app.routes, tags=app.openapi_tags)
            known = made.setdefault("components", {}).setdefault("schemas", {})
            known.update(api_body.schemas())
            known["Problem"] = Problem.model_json_schema()
            for path in made["paths"].values():
                for method, operation in path.items():
                    for code, answer in operation["responses"].items():
                        if answer["description"] == "Successful Response":  # as FastAPI says of every status
                            answer["description"] = HTTPStatus(int(code)).phrase
                    if method != "get":
                        operation["responses"] |= {str(code): each for code, each in problems(*OF_WRITES).items()}
            # A length of time is a number of seconds here, everywhere.
            known_as = json.dumps(made).replace('"type": "string", "format": "duration"', '"type": "number"')
            app.openapi_schema = json.loads(known_as)
        return app.openapi_schema or {}

    app.openapi = describe  # type: ignore[method-assign]
