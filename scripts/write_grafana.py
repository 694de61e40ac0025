"""Write what Grafana is provisioned with: two dashboards, and the alerts of monitoring/alerts.yml as Grafana's own.

    python scripts/write_grafana.py

A test compares what this writes with what is committed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

MONITORING = Path(__file__).resolve().parent.parent / "monitoring"
SOURCE = {"type": "prometheus", "uid": "prometheus"}
RATE = "$__rate_interval"
Panel = dict[str, Any]


def panel(
    title: str, kind: str, *targets: tuple[str, str], unit: str = "short", about: str = "", width: int = 12, height: int = 8, **more: Any
) -> Panel:
    """A panel of this kind with its targets: an expression and the legend of its series."""
    defaults: dict[str, Any] = {"unit": unit, "min": 0, **more.pop("defaults", {})}
    if kind == "timeseries":
        defaults["custom"] = {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": False, **more.pop("custom", {})}
        more.setdefault("options", {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}})
    return {
        "type": kind,
        "title": title,
        "description": about,
        "datasource": SOURCE,
        "gridPos": {"w": width, "h": height},
        "fieldConfig": {"defaults": defaults, "overrides": more.pop("overrides", [])},
        "targets": [
            {"refId": chr(ord("A") + number), "datasource": SOURCE, "expr": expr, "legendFormat": legend,
             "instant": kind == "stat", "range": kind != "stat"}
            for number, (expr, legend) in enumerate(targets)
        ],
        **more,
    }  # fmt: skip


def stat(
    title: str, expr: str, steps: Sequence[tuple[str, float | None]], *, unit: str = "short", about: str = "", width: int = 4
) -> Panel:
    """One number, coloured from the steps: a colour, and from which value on."""
    thresholds = {"mode": "absolute", "steps": [{"color": color, "value": value} for color, value in steps]}
    options = {"colorMode": "value", "graphMode": "none", "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    return panel(
        title, "stat", (expr, ""), unit=unit, about=about, width=width, height=4, defaults={"thresholds": thresholds}, options=options
    )


CALM = (("green", None), ("red", 1.0))
OVERVIEW = [
    stat("Workers", "max(relevo_workers)", (("red", None), ("green", 1.0)), about="Pool processes that are alive."),
    stat("Waiting", "sum(max by (plan) (relevo_depth))", (("text", None),), about="Items that are due and wait, in all plans."),
    stat("Undecided", "sum(max by (plan) (relevo_dead_letters))", CALM, about="Failed and interrupted items that wait for a decision."),
    stat("Plans held up", "count(max by (plan) (relevo_blocked_seconds) > 0) or vector(0)", CALM),
    stat("Sources down", "count(min by (source) (relevo_up) == 0) or vector(0)", CALM, about="Postgres, the broker, the feeder."),
    stat("Attempts", f"sum(max by (plan, task, outcome) (rate(relevo_attempts_total[{RATE}])))", (("text", None),), unit="ops"),
    panel("Items that are due and wait", "timeseries", ("max by (plan) (relevo_depth)", "{{plan}}")),
    panel("Age of the oldest of them", "timeseries", ("max by (plan) (relevo_oldest_age_seconds)", "{{plan}}"), unit="s"),
    panel("Attempts by outcome", "timeseries",
          (f"sum by (outcome) (max by (plan, task, outcome) (rate(relevo_attempts_total[{RATE}])))", "{{outcome}}"), unit="ops"),
    panel("Attempts that will be tried again", "timeseries", ("max by (plan) (relevo_retry_ratio)", "{{plan}}"), unit="percentunit",
          about="Over five minutes.", defaults={"max": 1}),
    panel("Undecided", "timeseries", ("max by (plan) (relevo_dead_letters)", "{{plan}}")),
    panel("Held up by an undecided item", "timeseries", ("max by (plan) (relevo_blocked_seconds)", "{{plan}}"), unit="s",
          about="Serial plans."),
    panel("Handed out and not started", "timeseries",
          ('max by (plan) (relevo_head_age_seconds{stage="dispatched"})', "{{plan}}"), unit="s"),
    panel("Messages in the broker", "timeseries", ("max by (queue) (relevo_broker_messages)", "{{queue}}")),
    panel("Wait, 95 %", "timeseries",
          (f"histogram_quantile(0.95, max by (plan, le) (rate(relevo_wait_seconds_bucket[{RATE}])))", "{{plan}}"), unit="s",
          about="From due to started."),
    panel("Workers", "timeseries", ("max(relevo_workers)", "workers"), ("min by (source) (relevo_up)", "{{source}} answers")),
]  # fmt: skip

OF_PLAN = 'plan="$plan"'
ONE_PLAN = [
    stat("Waiting", f"max(relevo_depth{{{OF_PLAN}}})", (("text", None),)),
    stat("Oldest", f"max(relevo_oldest_age_seconds{{{OF_PLAN}}})", (("text", None),), unit="s"),
    stat("Undecided", f"max(relevo_dead_letters{{{OF_PLAN}}})", CALM),
    stat("Held up for", f"max(relevo_blocked_seconds{{{OF_PLAN}}})", (("green", None), ("red", 1.0)), unit="s"),
    stat("Runs for", f'max(relevo_head_age_seconds{{{OF_PLAN}, stage="running"}})', (("text", None),), unit="s", about="The longest."),
    stat("May be out", f"max(relevo_concurrency{{{OF_PLAN}}})", (("text", None),), about="1 is a serial plan, more a stream."),
    panel("Items by state", "timeseries", (f"max by (state) (relevo_items{{{OF_PLAN}}})", "{{state}}"),
          custom={"stacking": {"mode": "normal"}}),
    panel("Age of the oldest that is due", "timeseries", (f"max(relevo_oldest_age_seconds{{{OF_PLAN}}})", "oldest"), unit="s"),
    panel("Attempts", "timeseries",
          (f"sum by (task, outcome) (max by (task, outcome) (rate(relevo_attempts_total{{{OF_PLAN}}}[{RATE}])))", "{{task}} {{outcome}}"),
          (f"max(rate(relevo_retries_total{{{OF_PLAN}}}[{RATE}]))", "will be tried again"),
          unit="ops"),
    panel("Attempts that will be tried again", "timeseries", (f"max(relevo_retry_ratio{{{OF_PLAN}}})", "share over five minutes"),
          unit="percentunit", defaults={"max": 1}),
    panel("Wait, from due to started", "timeseries",
          *((f"histogram_quantile({share}, max by (le) (rate(relevo_wait_seconds_bucket{{{OF_PLAN}}}[{RATE}])))", f"{share:.0%}")
            for share in (0.5, 0.95, 0.99)), unit="s"),
    panel("Run, 95 % by task", "timeseries",
          (f"histogram_quantile(0.95, max by (task, le) (rate(relevo_run_seconds_bucket{{{OF_PLAN}}}[{RATE}])))", "{{task}}"), unit="s"),
    panel("What is out, the longest", "timeseries", (f"max by (stage) (relevo_head_age_seconds{{{OF_PLAN}}})", "{{stage}}"), unit="s"),
    panel("Undecided", "timeseries",
          (f"max(relevo_dead_letters{{{OF_PLAN}}})", "items"), (f"max(relevo_blocked_seconds{{{OF_PLAN}}})", "held up, seconds")),
]  # fmt: skip
PLANS = "label_values(relevo_depth, plan)"
PLAN_VARIABLE = {
    "name": "plan", "label": "Plan", "type": "query", "datasource": SOURCE, "query": {"query": PLANS, "refId": "plan"},
    "definition": PLANS, "refresh": 2, "sort": 1, "multi": False, "includeAll": False,
}  # fmt: skip


def dashboard(uid: str, title: str, panels: Sequence[Panel], variables: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """A dashboard with the panels from left to right, row by row."""
    return {
        "uid": uid, "title": title, "tags": ["relevo"], "schemaVersion": 39, "version": 1, "editable": False, "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"}, "timezone": "browser", "graphTooltip": 1,
        "links": [{"type": "dashboards", "title": "Relevo", "tags": ["relevo"], "keepTime": True, "asDropdown": False}],
        "annotations": {"list": []}, "templating": {"list": list(variables)}, "panels": list(_placed(panels)),
    }  # fmt: skip


def _placed(panels: Sequence[Panel]) -> Iterator[Panel]:
    x = y = 0
    for number, each in enumerate(panels, 1):
        size = each["gridPos"]
        if x + size["w"] > 24:
            x = 0
            y += size["h"]
        yield {**each, "id": number, "gridPos": {**size, "x": x, "y": y}}
        x += size["w"]
        if x == 24:
            x = 0
            y += size["h"]


def alerts() -> dict[str, Any]:
    """The rules of Prometheus as Grafana's: each has the query, which gives something while it fires, and the question whether it does."""
    (group,) = yaml.safe_load((MONITORING / "alerts.yml").read_text())["groups"]
    return {
        "apiVersion": 1,
        "groups": [
            {"orgId": 1, "name": "relevo", "folder": "Relevo", "interval": "1m", "rules": [_alert(rule) for rule in group["rules"]]}
        ],
    }


def _alert(rule: dict[str, Any]) -> dict[str, Any]:
    def step(name: str, source: str, **model: Any) -> dict[str, Any]:
        return {
            "refId": name,
            "datasourceUid": source,
            "relativeTimeRange": {"from": 3600, "to": 0},
            "model": {"refId": name, **model},
        }

    return {
        "uid": re.sub(r"(?<!^)(?=[A-Z])", "-", rule["alert"]).lower(),
        "title": rule["alert"],
        "condition": "B",
        "data": [
            step("A", "prometheus", expr=rule["expr"], instant=True),
            step("B", "__expr__", type="math", expression="is_number($A)"),
        ],
        "noDataState": "OK",  # the query gives nothing where nothing is wrong
        "execErrState": "Alerting",
        "for": rule.get("for", "0s"),
        "labels": rule["labels"],
        # Neither these nor the models are searched for variables of the environment, so a $ may stand there.
        "annotations": {name: text.replace("$value", "$values.A.Value") for name, text in rule["annotations"].items()},
    }


def files() -> dict[Path, str]:
    """What is to be in each file."""
    grafana = MONITORING / "grafana"
    boards = {
        "overview": dashboard("relevo-overview", "Relevo: overview", OVERVIEW),
        "plan": dashboard("relevo-plan", "Relevo: one plan", ONE_PLAN, [PLAN_VARIABLE]),
    }
    written = "# Written by scripts/write_grafana.py from monitoring/alerts.yml.\n" + yaml.safe_dump(alerts(), sort_keys=False, width=140)
    return {
        **{grafana / "dashboards" / f"{name}.json": json.dumps(board, indent=2) + "\n" for name, board in boards.items()},
        grafana / "provisioning/alerting/relevo.yml": written,
    }


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content)
