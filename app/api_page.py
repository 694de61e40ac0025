"""The description of the API as a page shows it: operations by their tags, with parameters, bodies, examples and problems. Pure."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

REF = "#/components/schemas/"
METHODS = ("get", "post", "put", "patch", "delete")
DEPTH = 6  # of schemas in schemas
EXAMPLES = {"plan": "nightly", "item": "12", "fact": "3", "schedule": "backup"}  # what stands in an address, where an example calls it


@dataclass(frozen=True)
class Field:
    """A parameter, or a member of an object. `where`: path, query, header or body. `schema` names the schema that its type links to."""

    name: str
    type: str
    required: bool
    text: str
    where: str = "body"
    schema: str = ""


@dataclass(frozen=True)
class Answer:
    """One status that an operation answers. `schema` is what its body is; `problem`: it is a problem."""

    status: str
    text: str
    schema: str
    problem: bool


@dataclass(frozen=True)
class Operation:
    """One route with one method. `curl` are commands that call it, one for each example."""

    id: str
    method: str
    path: str
    summary: str
    text: str
    parameters: Sequence[Field]
    body: str
    many: bool
    curl: Sequence[str]
    answers: Sequence[Answer]


@dataclass(frozen=True)
class Schema:
    """An object of the API with its members."""

    name: str
    text: str
    fields: Sequence[Field]


@dataclass(frozen=True)
class Described:
    """The whole description: operations by tag, schemas by name."""

    title: str
    text: str
    tags: Mapping[str, Sequence[Operation]]
    schemas: Sequence[Schema]


def described(document: Mapping[str, Any]) -> Described:
    """An OpenAPI document as a page shows it."""
    tags: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                found = methods[method]
                tags.setdefault(next(iter(found.get("tags", [])), "server"), []).append(_operation(path, method, found))
    schemas = document.get("components", {}).get("schemas", {})
    shown = [_schema(name, each) for name, each in sorted(schemas.items()) if each.get("properties")]
    return Described(document["info"]["title"], document["info"].get("description", ""), tags, shown)


def _operation(path: str, method: str, found: Mapping[str, Any]) -> Operation:
    content = found.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = content.get("schema", {})
    many = "oneOf" in schema
    one = schema["oneOf"][0] if many else schema
    examples = [each["value"] for each in content.get("examples", {}).values()]
    return Operation(
        id=f"{method}-{path.strip('/').replace('/', '-').replace('{', '').replace('}', '')}",
        method=method.upper(),
        path=path,
        summary=found.get("summary", ""),
        text=found.get("description", ""),
        parameters=[_parameter(each) for each in found.get("parameters", [])],
        body=one.get("$ref", "").removeprefix(REF),
        many=many,
        curl=[_curl(path, method, each) for each in examples] or [_curl(path, method, None)],
        answers=[_answer(status, each) for status, each in sorted(found.get("responses", {}).items())],
    )


def _curl(path: str, method: str, body: Any) -> str:
    parts = ["curl"] + ([] if method == "get" else ["-X", method.upper()])
    if method != "get":
        parts += ["-H", shlex.quote("Content-Type: application/json")]
    if body is not None:
        parts += ["-d", shlex.quote(json.dumps(body, ensure_ascii=False))]
    return " ".join([*parts, f'"$RELEVO{re.sub("{(.*?)}", lambda name: EXAMPLES.get(name[1], name[1]), path)}"'])


def _parameter(found: Mapping[str, Any]) -> Field:
    schema = found.get("schema", {})
    return Field(found["name"], kind(schema), found.get("required", False), found.get("description", ""), found["in"], linked(schema))


def _answer(status: str, found: Mapping[str, Any]) -> Answer:
    content = found.get("content", {})
    media = next(iter(content), "")
    schema = content.get(media, {}).get("schema", {})
    return Answer(status, found.get("description", ""), linked(schema) or kind(schema), media == "application/problem+json")


def _schema(name: str, found: Mapping[str, Any]) -> Schema:
    required = set(found.get("required", []))
    fields = [
        Field(each, kind(schema), each in required, schema.get("description", ""), schema=linked(schema))
        for each, schema in found["properties"].items()
    ]
    return Schema(name, found.get("description", ""), fields)


def linked(schema: Mapping[str, Any]) -> str:
    """The name of the schema that this one is, or holds, if there is one with a name."""
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    inner = [*schema.get("anyOf", []), *schema.get("oneOf", []), *schema.get("allOf", [])]
    inner += [schema["items"]] if isinstance(schema.get("items"), Mapping) else []
    return next((name for each in inner if (name := linked(each))), "")


def kind(schema: Mapping[str, Any], depth: int = 0) -> str:
    """A schema's type in a few words: `text`, `list of ItemLine`, `halt | continue`, with its bounds."""
    if not schema or depth > DEPTH:
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"]).removeprefix(REF)
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(str(each) for each in schema["enum"])
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return " | ".join(dict.fromkeys(kind(each, depth + 1) for each in schema[union]))
    match schema.get("type"):
        case "array":
            return f"list of {kind(schema.get('items', {}), depth + 1)}"
        case list() as several:
            return " | ".join(map(str, several))
        case "string":
            return str(schema.get("format", "text"))
        case "integer" | "number" as number:
            low, high = schema.get("minimum"), schema.get("maximum")
            bounds = f" {low if low is not None else ''}…{high if high is not None else ''}" if low is not None or high is not None else ""
            return f"{number}{bounds}" if len(bounds) < 24 else str(number)
        case None:
            return "any"
        case other:
            return str(other)
