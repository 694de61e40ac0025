"""compose.yaml as Compose reads it: variables put in, what a service runs, its health check, its environment."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "compose.yaml"
VARIABLE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)(?::(?P<how>[-?])(?P<rest>[^}]*))?\})")


class Missing(Exception):
    """A variable that must be set is not."""


def interpolated(value: Any, given: Mapping[str, str]) -> Any:
    """`value` with every variable of its texts put in, as Compose does. Raises Missing."""
    if isinstance(value, dict):
        return {name: interpolated(each, given) for name, each in value.items()}
    if isinstance(value, list):
        return [interpolated(each, given) for each in value]
    return VARIABLE.sub(lambda found: _one(found, given), value) if isinstance(value, str) else value


def _one(found: re.Match[str], given: Mapping[str, str]) -> str:
    if found["dollar"]:
        return "$"
    value = given.get(found["name"], "")
    if value or found["how"] is None:
        return value
    if found["how"] == "?":
        raise Missing(found["name"])
    return found["rest"]


def raw() -> dict[str, Any]:
    """The file as it is written, with its anchors followed."""
    return dict(yaml.safe_load(FILE.read_text(encoding="utf-8")))


def example() -> dict[str, str]:
    """The variables that .env.example sets, with what they refer to put in."""
    given: dict[str, str] = {}
    for line in (ROOT / ".env.example").read_text(encoding="utf-8").splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            given[name] = value
    return given


def filled(**secrets: str) -> dict[str, str]:
    """As a person who copied .env.example has it: every empty variable filled in from `secrets`."""
    given = {name: value or secrets[name] for name, value in example().items()}
    return {name: interpolated(value, given) for name, value in given.items()}


def services(given: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Every service with its variables put in, of every profile."""
    return dict(interpolated(raw()["services"], given))
