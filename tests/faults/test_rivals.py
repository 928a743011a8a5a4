"""What a run beside kube-scheduler finds wrong, and forty seconds of one."""

from __future__ import annotations

import os
import secrets

import pytest

from gangsched.core.contention.pace import PASSED_S
from testbed import binaries
from testbed.api import Json
from tests.faults.rivals import Findings, lost, play

SAMPLE_S = 40.0


def event(second: int, reason: str, name: str, note: str = "") -> Json:
    stamp = f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}.000000Z"
    return {"eventTime": stamp, "reason": reason, "regarding": {"name": name}, "note": note}


def preempted(second: int, victim: str, holder: str) -> Json:
    return event(second, "Preempted", victim, f"All leave, because the group {holder} of higher priority needs them.")


def test_who_leaves_twice_for_a_group_that_loses_the_room_each_time_is_found() -> None:
    told = [preempted(1, "a", "high"), preempted(2, "b", "high"), event(3, "RoomLost", "high")]
    again = [preempted(4, "a", "high"), preempted(5, "c", "next"), event(6, "RoomLost", "high")]
    found = Findings(began=0, ended=60, lost=lost([*told, *again]))
    assert found.lost == {("a", "high"): 2, ("b", "high"): 1}
    assert len(found.wrong()) == 1


def test_who_was_told_twice_before_the_room_was_lost_has_left_in_vain_once() -> None:
    """The first plan has ended otherwise: a group before it in the order took the room."""
    told = [preempted(1, "a", "high"), preempted(2, "a", "high"), event(3, "RoomLost", "high")]
    assert lost(told) == {("a", "high"): 1}


def test_who_leaves_again_when_nobody_passes_over_him_any_more_has_left_in_vain_once() -> None:
    again = 3 + int(PASSED_S)
    told = [preempted(1, "a", "high"), event(3, "RoomLost", "high"), event(again + 9, "RoomLost", "high")]
    assert lost([*told, preempted(again, "a", "high")]) == {("a", "high"): 1}
    assert lost([*told, preempted(again - 1, "a", "high")]) == {("a", "high"): 2}


def test_who_leaves_for_a_group_that_starts_has_not_left_in_vain() -> None:
    told = [preempted(1, "a", "high"), preempted(2, "a", "next"), event(3, "RoomLost", "high")]
    assert lost(told) == {("a", "high"): 1}


@pytest.mark.parametrize(
    ("evicted", "ended", "wrong"),
    [
        ([*range(300)], 300, 0),
        ([*range(100), *range(155, 300)], 300, 0),
        ([*range(200, 300)], 300, 1),
        ([*range(20, 40)], 40, 0),
    ],
)
def test_evictions_that_get_more_frequent_are_found(evicted: list[float], ended: float, wrong: int) -> None:
    assert len(Findings(began=0, ended=ended, evicted=evicted).wrong()) == wrong


def test_a_group_that_is_bound_in_part_is_found() -> None:
    assert len(Findings(began=0, ended=60, partial=["a"]).wrong()) == 1


@pytest.mark.integration
@pytest.mark.sample
@pytest.mark.timeout(300)
def test_both_schedulers_preempt_on_the_same_nodes_without_a_loop() -> None:
    """`make nightly` does this for half an hour. The seed is in the output of a failure."""
    if binaries.find() is None:
        message = "NOT TESTED beside kube-scheduler: the control plane is not built; run make control-plane"
        pytest.fail(message) if os.environ.get("CI") == "true" else pytest.skip(message)
    seed = 1 if os.environ.get("CI") == "true" else secrets.randbelow(10**6)
    found = play(duration_s=SAMPLE_S, seed=seed)
    assert found.wrong() == [], f"seed {seed}: {found.report()}"
    assert found.evicted
    assert found.endings["Started"] >= 1
    assert min(found.bound["gangsched"], found.bound["kube-scheduler"]) >= 1
