"""What the page remembers, for how long, and in how much memory."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.record import Phase
from gangsched.page.board import Board
from gangsched.page.history import KEPT_S, MOST_STEPS, SAMPLE_S, History
from gangsched.page.machine_reader import keep
from gangsched.views.cluster_overview import Totals
from gangsched.views.group_row import GroupRow
from gangsched.views.timeline import Moment, Stage
from tests.browsing import remembered
from tests.page_scene import BEGIN, MINUTES, PLAYS

NOW = 1_000_000.0


def row(name: str = "a", phase: str = Phase.QUEUED, **fields: Any) -> GroupRow:
    given = {
        "reason": "",
        "message": "",
        "members": 2,
        "minimum": 2,
        "bound": 0,
        "created": NOW,
        "since": 0.0,
        **fields,
    }
    return GroupRow(key=GroupKey("team", name), declared=True, phase=phase, **given)


def noted(history: History, *rows: GroupRow, now: float = NOW, totals: Totals | None = None) -> dict[str, Any]:
    return {name: json.loads(thing) for name, thing in history.noted(rows, totals or Totals(), now)}


def steps(found: dict[str, Any], name: str = "a") -> list[tuple[str, float]]:
    return [(step, at) for step, at in found[f"past/team/{name}"]["steps"]]


@pytest.fixture(scope="module")
def scene() -> dict[str, Any]:
    return {name: json.loads(thing) for name, thing in remembered().items()}


def test_the_life_of_gangs_is_told_step_by_step(scene):
    def of(name: str) -> list[str]:
        return [step for step, _ in scene[f"past/{name}"]["steps"]]

    assert of("vision/diffusion-v4") == ["waiting", "binding", "starting", "running"]
    assert of("infra/nccl-burnin")[-2:] == ["running", "ended"]
    assert of("vision/yolo-search")[-2:] == ["running", "preempted"]
    assert of("research/big-moe") == ["waiting"]
    for name, course in scene.items():
        if name.startswith("past/"):
            times = [at for _, at in course["steps"]]
            assert all(one <= two for one, two in pairwise(times)), name
    assert scene["past/vision/yolo-search"]["steps"][0][1] == BEGIN + 60 * 28


def test_there_is_a_sample_each_minute(scene):
    samples = [thing for name, thing in scene.items() if name.startswith("minute/")]
    assert len(samples) == MINUTES - 1
    assert {two["at"] - one["at"] for one, two in pairwise(samples)} == {60.0}
    assert (samples[0]["running"], samples[-1]["waiting"]) == (0, 5)
    assert samples[-1]["use"]["nvidia.com/gpu"] == 0.9313
    assert len({name.split("/")[2] for name in scene if name.startswith("past/")}) == len(PLAYS) + 1


def test_the_record_knows_the_times_better_than_whoever_looks():
    history = History()
    noted(history, row())
    moments = [Moment(Stage.CREATED, NOW), Moment(Stage.SCHEDULED, NOW + 7), Moment(Stage.RUNNING, NOW + 9)]
    found = noted(history, row(phase=Phase.RUNNING, moments=moments), now=NOW + 60)
    assert steps(found) == [("waiting", NOW), ("running", NOW + 9)]
    found = noted(history, row(preemptions=1, since=NOW + 70), now=NOW + 120)
    assert steps(found)[2:] == [("preempted", NOW + 70)]


def test_what_was_undone_is_told_as_such_and_a_time_out_is_not():
    """A gang that had never been bound was "rolled back" once its time was out."""
    history = History()
    noted(history, row(phase=Phase.TIMED_OUT), now=NOW - 1)
    noted(history, row(phase=Phase.BINDING))
    noted(history, row(reason="BindingUndone"), now=NOW + 1)
    noted(history, row(phase=Phase.RUNNING), now=NOW + 3)
    noted(history, row(phase=Phase.DEGRADED), now=NOW + 4)
    noted(history, row(phase=Phase.PENDING, preemptions=1), now=NOW + 5)
    found = noted(history, row(phase=Phase.QUEUED, preemptions=1), now=NOW + 6)
    assert steps(found) == [
        ("waiting", NOW - 1),
        ("binding", NOW),
        ("rolled back", NOW + 1),
        ("running", NOW + 3),
        ("degraded", NOW + 4),
        ("preempted", NOW + 5),
    ]


def test_a_deleted_gang_stays_for_a_day():
    history = History()
    noted(history, row())
    found = noted(history, now=NOW + 5)
    assert found[f"past/team/a/{NOW + 5:.3f}"]["ended"] == NOW + 5
    assert [name for name in noted(history, now=NOW + 5 + KEPT_S) if name.startswith("past/")] != []
    assert [name for name in noted(history, now=NOW + 6 + KEPT_S) if name.startswith("past/")] == []
    assert history.size == 0


def test_a_gang_that_is_created_anew_begins_anew():
    history = History()
    noted(history, row())
    found = noted(history, row(created=NOW + 9), now=NOW + 9)
    assert len([name for name in found if name.startswith("past/")]) == 2
    assert steps(found) == [("waiting", NOW + 9)]


def test_a_gang_without_a_podgroup_stays_the_same_while_its_oldest_pod_is_replaced():
    """It counts as created with its oldest pod."""
    history, gang = History(), replace(row(phase=Phase.RUNNING), declared=False)
    noted(history, gang)
    found = noted(history, replace(gang, created=NOW + 9, bound=1), now=NOW + 9)
    assert [name for name in found if name.startswith("past/")] == ["past/team/a"]
    declared = replace(gang, created=NOW + 10, declared=True)
    assert steps(noted(history, declared, now=NOW + 10)) == [("running", NOW)]


def test_the_past_is_bounded():
    """By the size of all gangs, by the steps of each, and by the number of samples."""
    history = History(most_bytes=20_000)
    for turn in range(50):
        found = noted(history, *(row(f"g-{turn}-{at}") for at in range(20)), now=NOW + turn)
        assert sum(len(json.dumps(thing)) for name, thing in found.items() if name.startswith("past/")) < 30_000
    assert 10_000 < history.size < 22_000
    one = History()
    for turn in range(4 * MOST_STEPS):
        found = noted(one, row(phase=Phase.BINDING if turn % 2 else Phase.QUEUED), now=NOW + turn)
    assert len(steps(found)) == MOST_STEPS
    for minute in range(2000):
        kept = sum(1 for _ in one.noted((), Totals(), NOW + minute * SAMPLE_S))
    assert kept == KEPT_S / SAMPLE_S


def test_what_has_not_changed_is_not_made_anew():
    history, same = History(), row()
    [(_, before), _] = history.noted([same], Totals(), NOW)
    [(_, after), _] = history.noted([same], Totals(), NOW + 1)
    assert before is after
    assert steps(noted(history, replace(same, bound=1), now=NOW + 2)) == [("waiting", NOW)]


async def test_the_past_is_noted_while_nobody_looks():
    looks = 0

    def look():
        nonlocal looks
        looks += 1
        return iter(())

    keeping = asyncio.create_task(keep(Board(), look, every_s=0.01, alone_s=0.05))
    await asyncio.sleep(0.5)
    keeping.cancel()
    assert 2 <= looks <= 10
