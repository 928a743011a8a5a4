"""A Job that Kueue admits: the gang is what it runs at once."""

from __future__ import annotations

import pytest

from tests.workloads.pages import follow
from tests.workloads.plays import PLAYS, Setting, until_whole

SETTING = Setting(
    kind="Job in a queue",
    path="apis/batch/v1/jobs",
    config={"integrations": {"frameworks": ["batch/job"]}},
    fails="Failed",
)


@pytest.mark.usefixtures("played")
def test_it_ends_whole(stage, side, play):
    PLAYS[play](stage, SETTING, side.column)


def test_its_page_makes_a_whole_gang(stage, side, tmp_path):
    follow(stage, SETTING.kind, side.column, tmp_path)
    until_whole(stage, "bert")
