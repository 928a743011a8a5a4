"""Each workload of tests/workloads/settings.py, in each way to declare it."""

from __future__ import annotations

import pytest

from testbed.controllers.expected import OWN
from tests.workloads.made import expanded, unlike
from tests.workloads.pages import follow
from tests.workloads.plays import SIZE
from tests.workloads.plays import play as played_as


@pytest.mark.usefixtures("played")
def test_it_ends_whole(stage, side, setting, play):
    played_as(stage, setting, side.column, play)


def test_its_page_makes_a_whole_gang_of_the_pods_that_simulate_makes(stage, side, setting, tmp_path):
    follow(stage, setting.row, side.column, setting.manifest(side.column), tmp_path)
    stage.until(lambda: stage.counts("bert") == [(setting.pods, SIZE)], within_s=setting.within_s)
    if setting.simulated and side.column != OWN:
        made = expanded(tmp_path / "bert.yaml", stage.namespace)
        assert unlike(stage.live("bert"), made, varies=setting.varies) == []
