"""Every command, option, setting, route, problem, state and metric is named in its page of the reference."""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute
from prometheus_client.metrics import MetricWrapperBase

from app import problem, tokens, web
from app.health import Readiness
from ordering import db, model, views
from scripts import write_reference
from tests.docs.pages import ROOT, named, page, routes, rows
from workers.settings import PREFIX, Settings

NOBODY = "postgresql://nobody@127.0.0.1:1/none"  # never connected to


def test_the_page_of_the_commands_is_what_the_code_says() -> None:
    assert page("reference/cli.md") == write_reference.page(), "`make reference` renews it"


def test_every_command_and_option_is_in_the_page_of_the_commands() -> None:
    text = page("reference/cli.md")
    found = list(write_reference.commands())
    assert len(found) > 30
    for _, name, command in found:
        assert f"### {name}" in text
        section = text.split(f"### {name}", 1)[1].split("\n### ")[0]
        for written, _ in write_reference.options(name, command):
            assert written.split(",")[0].split()[0] in section, (name, written)


def test_every_setting_is_in_its_page_with_its_default() -> None:
    table = {cells[0].strip("`"): cells for cells in rows(page("reference/settings.md")) if cells[0].startswith("`")}
    assert set(table) == {PREFIX + name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        default = table[PREFIX + name.upper()][-1]
        if isinstance(field.default, (str, Path)):
            assert default == f"`{field.default}`", name


@pytest.fixture(scope="module")
def application() -> FastAPI:
    """The HTTP application; nothing of it is called."""
    found: Any = web.application(db.engine(NOBODY), Readiness({"database": lambda: None}), lambda _: None, only_loopback=True)  # type: ignore[arg-type, return-value]
    while not isinstance(found, FastAPI):
        found = getattr(found, "app", None) or found._app
    return found


def all_routes(routes: Iterable[Any]) -> Iterator[APIRoute]:
    """The routes, those of included routers too."""
    for route in routes:
        if isinstance(route, APIRoute):
            yield route
        elif hasattr(route, "original_router"):
            yield from all_routes(route.original_router.routes)


def test_every_route_is_in_a_page(application: FastAPI) -> None:
    there = {(method, route.path) for route in all_routes(application.routes) for method in route.methods}
    assert len(there) > 20
    told = routes(page("http.md"))
    assert there - told == set()
    assert {each for each in told if each[1].startswith(("/api", "/healthz", "/readyz"))} - there == set(), "a route that is no more"


def test_every_kind_of_problem_is_in_the_page_of_the_api() -> None:
    text = page("http.md")
    for kind in {*problem.KINDS.values(), problem.INVALID, problem.UNREACHABLE, problem.BUSY, problem.DEFECT}:
        assert f"`{kind.word}`" in text, kind


STATES: tuple[type[StrEnum], ...] = (
    model.State, model.OnFailure, model.OnInterrupt, model.Missed, model.Outcome, model.StepKind, views.Status,
)  # fmt: skip


@pytest.mark.parametrize("words", STATES, ids=lambda each: each.__name__)
def test_every_state_is_in_the_page_of_the_states(words: type[StrEnum]) -> None:
    told = {
        word for cells in rows(page("reference/states.md")) for cell in cells for word in cell.replace(",", " ").replace(";", " ").split()
    }
    assert {f"`{word}`" for word in words} <= told


def modules(package: str) -> list[ModuleType]:
    """Every module of a package that exists."""
    if not (ROOT / package).is_dir():
        return []
    found = pkgutil.iter_modules([str(ROOT / package)], f"{package}.")
    return [importlib.import_module(each.name) for each in found if not each.ispkg]


def test_every_metric_is_in_its_page() -> None:
    found = set()
    for module in [importlib.import_module("workers.volatile_work"), *modules("monitoring")]:
        for value in vars(module).values():
            if isinstance(value, MetricWrapperBase):
                found |= {metric.name + ("_total" if metric.type == "counter" else "") for metric in value.collect()}
    assert "relevo_volatile_total" in found
    told = {word.partition("{")[0] for word in named(page("reference/metrics.md"))}
    assert found <= told


def test_roles_of_tokens_are_in_the_page_of_the_api() -> None:
    assert {"view", "operate", "admin"} <= named(page("http.md"))
    assert tokens.LINE.fullmatch(f"me admin {'0' * 64}")
