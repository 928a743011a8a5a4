"""PyTorchJob, for all kinds of training-operator: the gang is the master and its workers."""

from __future__ import annotations

import pytest

from testbed.controllers.matrix import OWN
from tests.workloads.made import expanded, unlike
from tests.workloads.pages import follow
from tests.workloads.plays import PLAYS, Setting, until_whole

SETTING = Setting(
    kind="PyTorchJob",
    path="apis/kubeflow.org/v1/pytorchjobs",
    own_arguments=("--gang-scheduler-name=gangsched",),
    dialect="scheduler-plugins",
    scaled=lambda size: {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": size - 1}}}},
    suspended=lambda suspend: {"spec": {"runPolicy": {"suspend": suspend}}},
)


@pytest.mark.usefixtures("played")
def test_it_ends_whole(stage, side, play):
    PLAYS[play](stage, SETTING, side.column)


def test_its_page_makes_a_whole_gang_of_the_pods_that_simulate_makes(stage, side, tmp_path):
    follow(stage, SETTING.kind, side.column, tmp_path)
    until_whole(stage, "bert")
    if side.column != OWN:
        assert unlike(stage.live("bert"), expanded(tmp_path / "bert.yaml", stage.namespace)) == []
