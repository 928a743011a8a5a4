"""What must agree between the chart and the rest of the repository."""

from __future__ import annotations

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "gangsched"


def test_the_charts_crd_is_the_one_in_crds():
    name = "gangsched.io_podgroups.yaml"
    assert (CHART / "files" / name).read_text() == (ROOT / "crds" / name).read_text(), "run make docs"


def test_the_charts_app_version_is_the_packages():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
