"""Alerts, runbook and dashboard: every expression is PromQL on existing metrics and labels, and is documented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from documentation.monitoring import ALERTS, PANELS, RUNBOOK
from gangsched.runtime.metrics import Described, describe

ROOT = Path(__file__).resolve().parent.parent
FILES = ROOT / "charts" / "gangsched" / "files"
GIVEN = {"namespace", "job", "pod"}
"""Labels that a ServiceMonitor adds."""


def series() -> dict[str, set[str]]:
    """The labels of every time series of the operator."""
    found: dict[str, set[str]] = {}
    for metric in describe():
        for name, more in parts(metric):
            found[name] = {*metric.labels, *GIVEN, *more}
    return found


def parts(metric: Described) -> Iterator[tuple[str, set[str]]]:
    if metric.type == "histogram":
        yield f"{metric.name}_bucket", {"le"}
        yield f"{metric.name}_sum", set()
        yield f"{metric.name}_count", set()
    else:
        yield metric.name, set()


def wrong(expr: str) -> list[str]:
    """The names in the expression that are not a series, or not a label of every series that it queries."""
    known = series()
    named: list[str] = []
    asked: set[str] = set()
    for node in walk(promql_parser.parse(expr)):
        if isinstance(node, promql_parser.VectorSelector):
            named.append(str(node.name))
            asked |= {matcher.name for matcher in node.matchers.matchers}
        elif isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            asked |= set(node.modifier.labels)
    labels = set.intersection(*(known.get(name, asked) for name in named)) if named else set()
    return [name for name in named if name not in known] + sorted(asked - labels)


def walk(node: Any) -> Iterator[Any]:
    yield node
    for name in ("expr", "lhs", "rhs", "args", "vector_selector", "param"):
        inner = getattr(node, name, None)
        for each in inner if isinstance(inner, list) else [inner] if inner is not None else []:
            yield from walk(each)


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_asks_what_exists(alert):
    assert wrong(alert.expr) == []


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alerts_summary_uses_only_the_labels_that_its_expression_leaves(alert):
    assert set(re.findall(r"\$labels\.(\w+)", alert.summary)) <= {"namespace", "job"}
    assert ("$labels" in alert.summary) == (
        "by (namespace, job)" in alert.expr or "by (namespace, job, le)" in alert.expr
    )


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title)
def test_a_panel_shows_what_exists_with_the_labels_that_it_names(panel):
    assert panel.queries
    for legend, expr in panel.queries.items():
        assert wrong(expr) == []
        kept = {label for names in re.findall(r"by \(([^)]*)\)", expr) for label in names.split(", ")} | GIVEN
        assert set(re.findall(r"{{(\w+)}}", legend)) <= kept


def test_the_runbook_has_a_section_for_each_alert_and_the_alert_names_it():
    headings = re.findall(r"^## (\w+)$", (ROOT / RUNBOOK).read_text(), re.MULTILINE)
    rules = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"][0]["rules"]
    assert [rule["alert"] for rule in rules] == headings
    assert [rule["annotations"]["runbook"] for rule in rules] == [f"{RUNBOOK}#{name.lower()}" for name in headings]


def test_the_dashboard_has_a_place_of_its_own_for_each_panel():
    page = json.loads((FILES / "dashboard.json").read_text())
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in page["panels"]]
    assert len(set(places)) == len(places) == len(PANELS)
