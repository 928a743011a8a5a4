"""The workload controllers of the testbed, tested without building or running any."""

from __future__ import annotations

import re

import pytest

from documentation import matrix
from documentation.generate import ROOT
from testbed.controllers.expected import EXPECTED
from testbed.controllers.table import CONTROLLERS
from tests.workloads.made import expanded, unlike
from tests.workloads.settings import SETTINGS


def test_each_page_names_the_version_with_which_its_workloads_are_played():
    for row in EXPECTED.values():
        if row.controller:
            page = (ROOT / matrix.PAGE.parent / row.file).read_text()
            assert CONTROLLERS[row.controller].version.removeprefix("v") in page.partition("\n## ")[0], row.file


STATEFUL_SET = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: bert}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: bert}}
    spec: {schedulerName: gangsched, containers: [{name: worker, resources: {requests: {cpu: "1"}}}]}
"""


def real(**labels):
    """The pod that the StatefulSet's controller makes, with these labels."""
    owner = {"kind": "StatefulSet", "name": "bert", "controller": True}
    spec = {"schedulerName": "gangsched", "containers": [{"resources": {"requests": {"cpu": "1"}}}]}
    return {"metadata": {"name": "bert-0", "labels": labels, "ownerReferences": [owner]}, "spec": spec}


LABELS = {"app": "bert", "apps.kubernetes.io/pod-index": "0", "statefulset.kubernetes.io/pod-name": "bert-0"}
HASH = {"controller-revision-hash": "bert-5cb4d8d467"}


@pytest.mark.parametrize(
    ("labels", "varies", "same"),
    [
        (LABELS | HASH, "", True),
        (LABELS, "", False),
        (LABELS | HASH | {"app": "other"}, "", False),
        (LABELS | HASH | {"app": "bert"}, "bert(?=-0)", True),
        (LABELS | HASH | {"app": "other"}, "other|bert", True),
    ],
)
def test_pods_are_compared_by_all_labels_but_hashes_only_by_their_presence(tmp_path, labels, varies, same):
    """Regression: a controller derives its hash from its own form of the template, which simulate has not."""
    (tmp_path / "bert.yaml").write_text(STATEFUL_SET)
    found = unlike([real(**labels)], expanded(tmp_path / "bert.yaml", "default"), varies=varies)
    assert len(found) == (0 if same else 2)


def test_every_workload_that_can_be_declared_is_played_in_the_order_of_the_table():
    assert [setting.kind for setting in SETTINGS] == [row.kind for row in EXPECTED.values() if row.columns()]


def test_every_section_of_every_page_is_one_that_is_played():
    folder = (ROOT / matrix.PAGE).parent
    played = {(row.file, row.section(column)) for row in EXPECTED.values() for column in row.columns()}
    told = {
        (page.name, title)
        for page in folder.glob("*.md")
        if page.name != matrix.PAGE.name
        for title in re.findall(r"^## (.+)$", page.read_text(), flags=re.MULTILINE)
    }
    assert told == played
