"""The chart and the rest of the repository must agree."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from gangsched.config.dialects import NAMES
from gangsched.core.objects.duration import parse_duration
from gangsched.kube.dialects.dialect_table import DEFAULT
from gangsched.kube.foreign.demand_objects import DEMANDS

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "gangsched"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """The schema and all schemas inside it."""
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from nodes(inner)


def test_the_charts_crd_is_the_one_in_crds():
    name = "gangsched.io_podgroups.yaml"
    assert (CHART / "files" / name).read_text() == (ROOT / "crds" / name).read_text(), "run make docs"


def test_the_charts_app_version_is_the_packages():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_charts_dialects_are_all_but_the_one_that_needs_rights_to_write_in_every_namespace():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values["dialects"] == [name for name in NAMES if name != "palantir"]
    assert tuple(SCHEMA["properties"]["dialects"]["items"]["enum"]) == NAMES


def test_the_schema_describes_the_values_that_the_chart_has_and_what_helm_adds_to_them():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert set(SCHEMA["properties"]) == {*values, "global"}
    assert set(SCHEMA["properties"]["image"]["properties"]) == set(values["image"])


def test_no_part_of_the_values_takes_unknown_keys():
    parts = [node for node in nodes(SCHEMA) if isinstance(node.get("type"), str) and "properties" in node]
    assert len(parts) > 10
    assert [part for part in parts if part.get("additionalProperties") is not False] == []


CONFIG = SCHEMA["properties"]["config"]["properties"]


@pytest.mark.parametrize(
    ("setting", "shortest_s"),
    [(CONFIG["repairDeadline"], 1), (CONFIG["preemption"]["properties"]["delay"], 0)],
    ids=["a second or more", "or none"],
)
@given(text=st.from_regex(r"[0-9]{0,7}h?[0-9]{0,7}m?[0-9]{0,7}[sd ]?", fullmatch=True))
@example(text="")
@example(text="0s")
@example(text="10 min")
@example(text="168h")
def test_the_schema_refuses_the_durations_that_the_operator_refuses_but_for_the_longest(setting, shortest_s, text):
    taken = all(re.search(rule["pattern"], text) for rule in setting["allOf"])
    try:
        parse_duration(text, shortest_s=shortest_s)
    except ValueError as error:
        too_long = "out of range" in str(error) and re.search("[1-9]", text) is not None
        assert taken == too_long
    else:
        assert taken


def test_the_role_has_a_rule_for_each_kind_that_a_dialect_has_watched():
    rights = yaml.safe_load((CHART / "files" / "dialects.yaml").read_text())
    watched = [(kind.within or dialect, kind.resource) for dialect, kind in DEFAULT.kinds.items()]
    watched.append((DEMANDS.dialect, DEMANDS.kind))
    assert {
        dialect: [(rule["resource"], rule["group"], {"list", "watch"} <= set(rule["verbs"])) for rule in rules]
        for dialect, rules in rights.items()
    } == {
        dialect: [(kind.plural, kind.group, True) for owner, kind in watched if owner == dialect]
        for dialect, _ in watched
    }
