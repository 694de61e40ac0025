"""Every command, option, setting, route, problem, state and metric is named in its page of the reference."""

import re
from enum import StrEnum
from pathlib import Path

import pytest
import yaml

from app import listen, problem, tokens
from monitoring import metrics
from ordering import model, views
from scripts import write_reference
from tests.docs.pages import CODE, ROOT, named, page, routes, rows
from workers import volatile_work
from workers.settings import PREFIX, Settings

PORTS = {"port": listen.DEFAULT_PORT, "exporter_port": listen.DEFAULT_EXPORTER_PORT}


@pytest.mark.parametrize("name", write_reference.PAGES)
def test_what_is_written_from_the_code_is_what_the_code_says(name: str) -> None:
    assert page(f"reference/{name}") == write_reference.PAGES[name](), "`make reference` renews it"


def test_every_command_and_option_is_in_the_page_of_the_commands() -> None:
    text = page("reference/cli.md")
    found = list(write_reference.commands())
    assert len(found) > 30
    for _, name, command in found:
        assert f"### {name}" in text
        section = re.split(rf"^### {name}(?= |$)", text, flags=re.M)[1].split("\n### ")[0]
        for written, _ in write_reference.options(name, command):
            assert written.split(",")[0].split()[0] in section, (name, written)


def test_every_setting_is_in_its_page_with_its_default() -> None:
    table = {cells[0].strip("`"): cells for cells in rows(page("reference/settings.md")) if cells[0].startswith("`")}
    assert set(table) == {PREFIX + name.upper() for name in Settings.model_fields}
    for name, field in Settings.model_fields.items():
        default = table[PREFIX + name.upper()][-1]
        if name in PORTS:
            assert default == f"`{PORTS[name]}`"
            assert f" where {PORTS[name]} is taken" in table[PREFIX + name.upper()][1]
        if isinstance(field.default, (str, Path)):
            assert default == f"`{field.default}`", name


def test_every_route_is_in_a_page() -> None:
    found = write_reference.all_routes(write_reference.application().routes)
    there = {(method, route.path) for route in found for method in (route.methods or set()) - {"HEAD"}}
    assert len(there) > 40
    told = routes(page("http.md")) | routes(page("reference/board.md"))
    assert there - told == set(), "not told of"
    assert told - there == set(), "told of, and there no more"


def test_every_kind_of_problem_is_in_the_page_of_the_api() -> None:
    text = page("http.md")
    for kind in {*problem.KINDS.values(), problem.INVALID, problem.UNREACHABLE, problem.BUSY, problem.DEFECT}:
        assert f"`{kind.word}`" in text, kind


STATES: tuple[type[StrEnum], ...] = (
    model.State, model.OnFailure, model.OnInterrupt, model.Missed, model.Outcome, model.StepKind, views.Status,
)  # fmt: skip


@pytest.mark.parametrize("words", STATES, ids=lambda each: each.__name__)
def test_every_state_is_in_the_page_of_the_states(words: type[StrEnum]) -> None:
    told = {word for cells in rows(page("reference/states.md")) for cell in cells for word in CODE.findall(cell)}
    assert {str(word) for word in words} <= told


def test_every_metric_is_in_its_page_with_its_labels() -> None:
    volatile = next(iter(volatile_work.total.collect()))
    found: dict[str, tuple[str, ...]] = {f"{volatile.name}_total": ("outcome",)}
    for metric in metrics.METRICS:
        found[metric.name + ("_total" if metric.kind is metrics.Kind.COUNTER else "")] = metric.labels
    told = {cells[0].strip("`"): CODE.findall(cells[2]) for cells in rows(page("metrics.md")) if cells[0].startswith("`relevo_")}
    assert told == {name: list(labels) for name, labels in found.items()}


def test_every_alert_has_a_runbook_and_is_in_the_page() -> None:
    groups = yaml.safe_load((ROOT / "monitoring" / "alerts.yml").read_text(encoding="utf-8"))["groups"]
    alerts = {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}
    assert len(alerts) > 5
    for name, rule in alerts.items():
        assert f"| [{name}](runbooks/" in page("metrics.md"), name
        assert (ROOT / rule["annotations"]["runbook_url"].partition("#")[0]).exists(), name


def test_roles_of_tokens_are_in_the_page_of_the_api() -> None:
    assert {"view", "operate", "admin"} <= named(page("http.md"))
    assert tokens.LINE.fullmatch(f"me admin {'0' * 64}")
