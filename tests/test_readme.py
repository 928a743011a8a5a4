"""The versions and the picture in README.md are correct."""

from __future__ import annotations

import re

import yaml

from documentation import tested
from documentation.generate import ROOT
from testbed import versions
from testbed.binaries import Pins

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_versions_are_those_that_the_tests_pin() -> None:
    [said] = re.findall(r"\*\*tested with\*\* (.*?), on Linux", README, re.DOTALL)
    named = dict(re.findall(r"(\S+)\s+v?([\d.]+\d)", said))
    pins = Pins.read()
    kubernetes = pins.kubernetes.removeprefix("v")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yaml").read_text())
    python, *_ = workflow["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert named == {
        "Kubernetes": kubernetes,
        "kubectl": kubernetes,
        "helm": pins.helm.removeprefix("v"),
        "Python": python,
    }
    assert {*re.findall(r"^FROM python:([\d.]+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)} == {python}
    assert pins.kubernetes == tested.read(ROOT)[-1].kubernetes
    older = [each.kubernetes for each in versions.older().values()]
    assert [each.kubernetes for each in tested.read(ROOT)] == [*older, pins.kubernetes]


def test_the_oldest_kubernetes_is_the_charts() -> None:
    chart = yaml.safe_load((ROOT / "charts" / "gangsched" / "Chart.yaml").read_text())
    [oldest] = re.findall(r"Kubernetes ([\d.]+) and later", README)
    assert chart["kubeVersion"] == f">={oldest}.0-0"
