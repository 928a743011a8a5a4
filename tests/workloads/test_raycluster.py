"""RayCluster: the gang is the head and its workers."""

from __future__ import annotations

import pytest
import yaml

from testbed.controllers.matrix import AUTO, OWN
from tests.workloads.made import expanded, unlike
from tests.workloads.pages import follow, manifest
from tests.workloads.plays import PLAYS, Setting, until_whole


def scaled(size: int) -> dict:
    """The workers beside one head. A merge patch replaces the list of worker groups, so all of it is told."""
    manifests = yaml.safe_load_all(manifest("RayCluster", AUTO))
    [group] = next(iter(manifests))["spec"]["workerGroupSpecs"]
    return {"spec": {"workerGroupSpecs": [group | {"replicas": size - 1}]}}


SETTING = Setting(
    kind="RayCluster",
    path="apis/ray.io/v1/rayclusters",
    own_arguments=("--batch-scheduler=scheduler-plugins",),
    dialect="scheduler-plugins",
    scaled=scaled,
    suspended=lambda suspend: {"spec": {"suspend": suspend}},
)


@pytest.mark.usefixtures("played")
def test_it_ends_whole(stage, side, play):
    PLAYS[play](stage, SETTING, side.column)


def test_its_page_makes_a_whole_gang_of_the_pods_that_simulate_makes(stage, side, tmp_path):
    follow(stage, SETTING.kind, side.column, tmp_path)
    until_whole(stage, "bert")
    if side.column != OWN:
        assert unlike(stage.live("bert"), expanded(tmp_path / "bert.yaml", stage.namespace)) == []
