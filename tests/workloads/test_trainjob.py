"""TrainJob: the gang is all pods of the JobSet that Trainer makes of it."""

from __future__ import annotations

import pytest

from tests.workloads.pages import follow
from tests.workloads.plays import PLAYS, Setting, until_whole

SETTING = Setting(
    kind="TrainJob",
    path="apis/trainer.kubeflow.org/v1alpha1/trainjobs",
    dialect="scheduler-plugins",
    fails="Failed",
    suspended=lambda suspend: {"spec": {"suspend": suspend}},
)


@pytest.mark.usefixtures("played")
def test_it_ends_whole(stage, side, play):
    PLAYS[play](stage, SETTING, side.column)


def test_its_page_makes_a_whole_gang(stage, side, tmp_path):
    follow(stage, SETTING.kind, side.column, tmp_path)
    until_whole(stage, "bert")
