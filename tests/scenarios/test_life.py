"""A gang's life as one table: it comes to rest, and its story tells the steps."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.gang import life
from gangsched.core.gang.gang import MOST_TOLD
from gangsched.core.gang.life import Chapter, NoRest, Row
from gangsched.core.gang.turn import Turn
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import PodSeen
from gangsched.core.objects.faults import Fault
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.results import PodBound
from tests.builders import group, key, node, pod
from tests.harness import Harness

pytestmark = pytest.mark.without("all", why="asserts the steps of one course of events")


def told(harness: Harness, name: str) -> list[str]:
    return [what for _, what in harness.gang(name).story]


def test_the_story_of_a_gang_tells_what_was_stored_and_which_steps_followed():
    harness = Harness.of(node(cpu=8), group("a", min_member=2), pod("a-0", group="a"))
    harness.step()
    harness.add(pod("a-1", group="a"))
    harness.step()
    assert told(harness, "default/a") == [
        "Declared",
        "the first member lives",
        "it asks for something else",
        "it is complete",
        "the clock starts",
    ]


def test_a_story_keeps_its_last_steps():
    harness = Harness.of(node(cpu=8), group("a", min_member=1))
    for number in range(MOST_TOLD):
        harness.settle(pod(f"a-{number}", group="a"))
        harness.run_pods(PodPhase.SUCCEEDED)
        harness.settle()
    story = harness.gang("default/a").story
    assert len(story) == MOST_TOLD
    assert sorted(at for at, _ in story) == [at for at, _ in story]


def test_a_pod_without_a_group_has_no_story():
    harness = Harness.settled(node(cpu=8), pod("p", group="", cpu=99))
    (gang,) = harness.machine.gangs.values()
    assert gang.plain
    assert gang.story == []


@pytest.mark.faults
def test_rows_that_contradict_each_other_park_the_gang_and_its_story_names_them(monkeypatch):
    row = Row("never done", lambda _: True, lambda _: None)
    stages = tuple(((lambda _: True, (row,)),) for _ in range(2))
    monkeypatch.setattr(life, "_STAGES", stages)
    harness = Harness.of(node(cpu=8), group("a", min_member=1), pod("a-0", group="a"))
    harness.machine.handle(harness.inbox, harness.now)
    (fault,) = harness.machine.take_faults()
    assert isinstance(fault, Fault)
    assert isinstance(fault.error, NoRest)
    assert {what for _, what in fault.story} == {"Declared", "never done"}


def test_a_step_says_all_that_it_changes(monkeypatch):
    """Who looks anew after a turn sees what the turn sees."""
    seen, anew = list[object](), list[object]()

    def go_on(turn, go_on=life.go_on):
        go_on(turn)
        fresh = Turn(turn.gang, turn.cluster, turn.terms, policy=turn.policy, now=turn.now)
        for known, each in ((seen, turn), (anew, fresh)):
            known.append((each.census, each.ended, each.asks, each.need, each.progress))

    monkeypatch.setattr(life, "go_on", go_on)
    harness = Harness.of(node("n", cpu=8), group("a", min_member=2, max_member=2), pod("a-0", group="a"))
    harness.settle(pod("a-1", group="a"), pod("a-2", group="a"))
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.settle(pod("a-3", group="a"))
    assert harness.gang("default/a").record.scheduled_at
    assert seen == anew


def test_every_row_belongs_to_a_stage_and_no_name_is_given_twice():
    assert all(isinstance(chapter, Chapter) for chapter in life.TABLE)
    rows = [row for chapter in life.TABLE for row in chapter.rows]
    assert len({row.name for row in rows}) == len(rows)
    assert {row.stage for row in rows} == {"", life.WAITING, life.SCHEDULED}


# What tells a gang nothing new


@pytest.mark.parametrize(
    ("confirmed", "fields", "nothing_new"),
    [
        (True, {}, True),
        (True, {"condition_reason": "", "bound_at": 5.0}, True),
        (True, {"phase": PodPhase.RUNNING}, False),
        (True, {"terminating": True}, False),
        (True, {"labels": (("x", "y"),)}, False),
        (False, {}, False),
    ],
)
def test_a_pod_that_shows_its_confirmed_binding_and_nothing_else_tells_its_gang_nothing(confirmed, fields, nothing_new):
    harness = Harness()
    machine = harness.machine
    harness.add(node(cpu=8), group("a", min_member=1), pod("a-0", group="a"))
    (sent,) = (effect for effect in machine.handle(harness.inbox, 1.0) if isinstance(effect, BindPod))
    if confirmed:
        machine.handle([PodBound(sent.uid, sent.node)], 2.0)
    machine.handle([PodSeen(replace(harness.pod("default/a-0"), node=sent.node, **fields))], 3.0)
    assert (not machine.touched) is nothing_new
    assert machine.gangs[key("a")].record.scheduled_at
    assert machine.validate() == []


def test_a_pod_without_a_group_is_forgotten_once_its_confirmed_binding_is_shown():
    harness = Harness.settled(node(cpu=8), pod("p", group=""))
    assert harness.bound() == ["default/p"]
    assert not harness.machine.gangs


def test_a_result_that_the_watch_has_shown_before_tells_the_gang_nothing():
    harness = Harness()
    machine = harness.machine
    harness.add(node(cpu=8), group("a", min_member=1), pod("a-0", group="a"))
    (sent,) = (effect for effect in machine.handle(harness.inbox, 1.0) if isinstance(effect, BindPod))
    machine.handle([PodSeen(replace(harness.pod("default/a-0"), node=sent.node))], 2.0)
    assert machine.touched
    machine.handle([PodBound(sent.uid, sent.node)], 3.0)
    assert not machine.touched
    assert machine.validate() == []
