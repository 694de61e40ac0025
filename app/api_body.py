"""The body of a call: JSON in UTF-8, checked against a model, each fault in one sentence that names the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import models_json_schema

from app import json_once, problem
from app.door import BODY
from app.problem import Refused
from ordering.errors import Invalid

T = TypeVar("T")
REFS = "#/components/schemas/{model}"
_models: list[type[BaseModel]] = []


class Body(BaseModel):
    """Base of all bodies: nothing is converted, and nothing unknown is passed over."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def read(request: Request) -> Any:
    """The body as JSON. Raises Refused (400) if it is none."""
    try:
        return _loads(request.scope[BODY].decode() or "{}")
    except UnicodeDecodeError as error:
        raise Refused(400, f"The body is not UTF-8: byte {error.start}.") from None
    except RecursionError:
        raise Refused(400, "The body is nested too deeply.") from None
    except json_once.Twice as error:
        raise Refused(400, f"The body {error}.") from None
    except ValueError as error:  # also a number of thousands of digits
        raise Refused(400, f"The body is not JSON: {error}.") from None


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


_loads = json_once.reader(_no_number)


def body_of(model: type[T]) -> Callable[[Request], T]:
    """A dependency that gives the body as `model`; none at all is an empty object."""
    adapter: TypeAdapter[T] = TypeAdapter(model)

    def body(request: Request) -> T:
        return validated(adapter, read(request))

    return body


def one_or_many(model: type[T]) -> Callable[[Request], T | list[T]]:
    """As `body_of`, for one or a list."""
    one: TypeAdapter[T] = TypeAdapter(model)
    many: TypeAdapter[list[T]] = TypeAdapter(list[model])  # type: ignore[valid-type]

    def body(request: Request) -> T | list[T]:
        value = read(request)
        return validated(many, value) if isinstance(value, list) else validated(one, value)

    return body


def validated(adapter: TypeAdapter[T], value: Any) -> T:
    """`value` as the adapter's type. Raises Invalid naming the field."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(each) for each in first["loc"]) or "body"
        raise Invalid(field[:200], f"{problem.said(first)}.") from None
    except RecursionError:
        raise Refused(400, "The body is nested too deeply.") from None


def takes(model: type[BaseModel], *examples: Any, many: bool = False, required: bool = True) -> dict[str, Any]:
    """What the API's description says of a body (for `openapi_extra`); `many`: one, or a list."""
    _models.append(model)
    one = {"$ref": REFS.format(model=model.__name__)}
    schema = {"oneOf": [one, {"type": "array", "items": one}]} if many else one
    named = {f"example {number}": {"value": each} for number, each in enumerate(examples, 1)}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema, "examples": named}}}}


def schemas() -> dict[str, Any]:
    """The schemas of all bodies, by their names."""
    _, found = models_json_schema([(model, "validation") for model in dict.fromkeys(_models)], ref_template=REFS)
    schemas: dict[str, Any] = found.get("$defs", {})
    return schemas
