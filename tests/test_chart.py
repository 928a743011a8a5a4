"""What must agree between the chart and the rest of the repository."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import yaml

from gangsched.config.dialects import NAMES
from gangsched.kube.dialects.table import DEFAULT

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "gangsched"


def test_the_charts_crd_is_the_one_in_crds():
    name = "gangsched.io_podgroups.yaml"
    assert (CHART / "files" / name).read_text() == (ROOT / "crds" / name).read_text(), "run make docs"


def test_the_charts_app_version_is_the_packages():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_the_charts_dialects_are_all_but_the_one_that_needs_rights_to_write_in_every_namespace():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert values["dialects"] == [name for name in NAMES if name != "palantir"]
    assert tuple(schema["properties"]["dialects"]["items"]["enum"]) == NAMES


def test_the_role_has_a_rule_for_each_dialect_with_podgroups_of_its_own():
    rule = re.compile(r'"([a-z-]+)" "([a-z0-9.-]+)"')
    [line] = [
        line for line in (CHART / "templates" / "rbac.yaml").read_text().splitlines() if "$groups := dict" in line
    ]
    assert dict(rule.findall(line)) == {dialect: kind.group for dialect, kind in DEFAULT.kinds.items()}
