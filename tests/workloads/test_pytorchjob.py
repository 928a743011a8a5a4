"""PyTorchJob, for all kinds of training-operator: the gang is the master and its workers."""

from __future__ import annotations

import pytest

from tests.workloads.pages import follow
from tests.workloads.plays import PLAYS, Setting

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


def test_the_commands_of_its_page_make_a_whole_gang(stage, side, tmp_path):
    follow(stage, SETTING.kind, side.column, tmp_path)
    stage.until(lambda: stage.counts("bert") == (5, 5))
