"""MPIJob: the gang is the launcher and its workers."""

from __future__ import annotations

import pytest

from tests.workloads.pages import follow
from tests.workloads.plays import PLAYS, Setting

SETTING = Setting(
    kind="MPIJob",
    path="apis/kubeflow.org/v2beta1/mpijobs",
    own_arguments=("--gang-scheduling=gangsched",),
    dialect="scheduler-plugins",
    scaled=lambda size: {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": size - 1}}}},
    suspended=lambda suspend: {"spec": {"runPolicy": {"suspend": suspend}}},
)


@pytest.mark.usefixtures("played")
def test_it_ends_whole(stage, side, play):
    PLAYS[play](stage, SETTING, side.column)


def test_the_commands_of_its_page_make_a_whole_gang(stage, side, tmp_path):
    follow(stage, SETTING.kind, side.column, tmp_path)
    stage.until(lambda: stage.counts("bert") == (5, 5))
