"""LeaderWorkerSet: each replica, a leader and its workers, is a gang."""

from __future__ import annotations

import pytest

from testbed.controllers.matrix import OWN, SCALE
from tests.workloads.made import expanded, unlike
from tests.workloads.pages import follow, manifest
from tests.workloads.plays import PLAYS, SIZE, Setting, until_whole
from tests.workloads.stage import Stage

SETTING = Setting(
    kind="LeaderWorkerSet",
    path="apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",
    own_config={"gangSchedulingManagement": {"schedulerProvider": "volcano"}},
    dialect="volcano",
    suspended=lambda suspend: {"spec": {"replicas": 0 if suspend else 1}},
)


def second_replica(stage: Stage, setting: Setting, column: str) -> None:
    """A second replica waits whole beside the first, which is not touched, and goes again."""
    stage.apply(manifest(setting.kind, column, "first"))
    until_whole(stage, "first")
    before = set(stage.bound())
    stage.patch("first", {"spec": {"replicas": 2}})
    stage.until(lambda: stage.counts("first") == (2 * SIZE, SIZE))
    stage.patch("first", {"spec": {"replicas": 1}})
    until_whole(stage, "first")
    assert set(stage.bound()) == before


@pytest.mark.usefixtures("played")
def test_it_ends_whole(stage, side, play):
    (PLAYS | {SCALE: second_replica})[play](stage, SETTING, side.column)


def test_its_page_makes_a_whole_gang_of_the_pods_that_simulate_makes(stage, side, tmp_path):
    follow(stage, SETTING.kind, side.column, tmp_path)
    until_whole(stage, "bert")
    if side.column != OWN:
        assert unlike(stage.live("bert"), expanded(tmp_path / "bert.yaml", stage.namespace)) == []
