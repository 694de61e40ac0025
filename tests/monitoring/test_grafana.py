"""What Grafana is provisioned with is what the generator writes, hangs together, and asks for figures that there are.

That every expression gives something is seen in test_scenario.py; that Grafana itself loads the files is not tested here.
"""

import importlib.util
import json
import re
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from monitoring import metrics

ROOT = Path(__file__).resolve().parents[2]
GRAFANA = ROOT / "monitoring/grafana"
DASHBOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_grafana", ROOT / "scripts/write_grafana.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_the_files_are_as_they_would_be_written() -> None:
    for path, content in generator().files().items():
        assert path.read_text() == content, f"python scripts/write_grafana.py renews {path.relative_to(ROOT)}"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: str(path.stem))
def test_a_dashboard_hangs_together(path: Path) -> None:
    board: dict[str, Any] = json.loads(path.read_text())
    (source,) = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        assert panel["title"]
        assert panel["datasource"] == {"type": source["type"], "uid": source["uid"]}
        assert panel["targets"]
    for one, two in combinations([panel["gridPos"] for panel in panels], 2):
        apart = one["x"] + one["w"] <= two["x"] or two["x"] + two["w"] <= one["x"]
        assert apart or one["y"] + one["h"] <= two["y"] or two["y"] + two["h"] <= one["y"], (one, two)
    used = set(re.findall(r"\$(\w+)", json.dumps(panels))) - {"__rate_interval"}
    assert used == {variable["name"] for variable in board["templating"]["list"]}


def test_the_dashboards_show_every_metric() -> None:
    shown = "".join(path.read_text() for path in DASHBOARDS)
    for metric in metrics.METRICS:
        assert metric.name in shown, metric.name


def test_grafanas_alerts_are_those_of_prometheus() -> None:
    (group,) = yaml.safe_load((GRAFANA / "provisioning/alerting/relevo.yml").read_text())["groups"]
    rules = yaml.safe_load((ROOT / "monitoring/alerts.yml").read_text())["groups"][0]["rules"]
    assert [(each["title"], each["data"][0]["model"]["expr"], each["labels"]) for each in group["rules"]] == [
        (each["alert"], each["expr"], each["labels"]) for each in rules
    ]
    assert len({each["uid"] for each in group["rules"]}) == len(rules)
