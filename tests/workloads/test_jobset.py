"""JobSet: the gang is all pods of all its jobs."""

from __future__ import annotations

import pytest

from tests.workloads.pages import follow
from tests.workloads.plays import PLAYS, Setting

SETTING = Setting(
    kind="JobSet",
    path="apis/jobset.x-k8s.io/v1alpha2/jobsets",
    fails="Failed",
    suspended=lambda suspend: {"spec": {"suspend": suspend}},
)


@pytest.mark.usefixtures("played")
def test_it_ends_whole(stage, side, play):
    PLAYS[play](stage, SETTING, side.column)


def test_the_commands_of_its_page_make_a_whole_gang(stage, side, tmp_path):
    follow(stage, SETTING.kind, side.column, tmp_path)
    stage.until(lambda: stage.counts("bert") == (5, 5))
