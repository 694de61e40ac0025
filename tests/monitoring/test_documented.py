"""Every metric and every alert is documented as it is, and every command of a runbook is there."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from app import cli
from monitoring import metrics
from monitoring.metrics import Kind

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/metrics.md").read_text()
RULES: list[dict[str, Any]] = yaml.safe_load((ROOT / "monitoring/alerts.yml").read_text())["groups"][0]["rules"]
RUNBOOKS = sorted((ROOT / "docs/runbooks").glob("*.md"))


def test_every_metric_is_in_the_page_with_its_kind_and_labels() -> None:
    rows = re.findall(r"^\| `(relevo_\w+)` \| (\w+) \| (.*?) \|", PAGE.partition("## Of a web process")[0], re.MULTILINE)
    written = {name: (kind, re.findall(r"`(\w+)`", labels)) for name, kind, labels in rows}
    assert written == {
        f"{each.name}{'_total' if each.kind is Kind.COUNTER else ''}": (each.kind, list(each.labels)) for each in metrics.METRICS
    }


def test_every_alert_is_in_the_page_with_its_severity_and_its_runbook() -> None:
    written = re.findall(r"^\| \[(\w+)\]\((runbooks/[\w-]+\.md)\) \|.*\| (\w+) \|$", PAGE, re.MULTILINE)
    assert written == [
        (each["alert"], each["annotations"]["runbook_url"].removeprefix("docs/"), each["labels"]["severity"]) for each in RULES
    ]
    assert sorted(each["annotations"]["runbook_url"] for each in RULES) == [str(each.relative_to(ROOT)) for each in RUNBOOKS]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_asks_for_metrics_that_there_are_and_names_its_plan(rule: dict[str, Any]) -> None:
    known = {f"{each.name}{'_total' if each.kind is Kind.COUNTER else ''}" for each in metrics.METRICS}
    asked = set(re.findall(r"relevo_\w+", rule["expr"]))
    assert asked <= known
    assert ("$labels.plan" in rule["annotations"]["summary"]) == ("by (plan" in rule["expr"])
    assert (ROOT / rule["annotations"]["runbook_url"]).read_text().startswith(f"# {rule['alert']}: ")


def commands(page: Path) -> list[str]:
    """The calls of `relevo` in a page."""
    text = page.read_text()
    blocks = [line for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL) for line in block.splitlines()]
    inline = re.findall(r"`(relevo [^`]+)`", text)
    return [line.split("#")[0].strip() for line in [*blocks, *inline] if line.startswith("relevo ")]


@pytest.mark.parametrize("page", RUNBOOKS, ids=lambda page: str(page.stem))
def test_every_command_of_a_runbook_is_there_with_its_options(page: Path) -> None:
    found = commands(page)
    assert found
    for line in found:
        words = shlex.split(line)[1:]
        command: Any = get_command(cli._app())
        while words and hasattr(command, "commands") and not words[0].startswith("-"):
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        if command.name in ("worker", "feeder"):
            continue  # their options are the service's own
        options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        assert {word for word in words if word.startswith("-")} <= options, line
        arguments = [word for word in words if not word.startswith("-") and word.isupper()]
        assert len(arguments) <= sum(each.param_type_name == "argument" for each in command.params) + words.count("GROUP") + words.count(
            "--rate"
        ), line
