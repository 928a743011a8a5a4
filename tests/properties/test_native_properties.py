"""Pods of gangsched and of kube-scheduler that name one native group come, end and go: who is told, what is written."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.objects.declaration import NATIVE, GroupKey
from gangsched.core.objects.effects import PutCondition
from gangsched.core.objects.pod import PodPhase
from gangsched.core.objects.podgroup import SeenCondition
from tests.builders import node
from tests.harness import Harness
from tests.scenarios.test_changed_minimum import SHOWN, native, running
from tests.scenarios.test_conditions import read
from tests.scenarios.test_foreign import member, members

KEY = GroupKey("default", "g")
WHO = st.sampled_from(["ours", "theirs"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("make"), WHO),
        st.tuples(st.just("delete"), WHO),
        st.tuples(st.just("end"), WHO, st.sampled_from([PodPhase.SUCCEEDED, PodPhase.FAILED])),
        st.tuples(st.just("need"), st.integers(1, 4)),
        st.sampled_from([("room",), ("restart",), ("wait",), ("remake",)]),
    ),
    max_size=16,
)


class Life:
    """A native group, its pods of both schedulers, and whether its condition has ever been True."""

    def __init__(self) -> None:
        self.harness = Harness()
        self.harness.add(read())
        self.made = 0
        self.uid = "uid-g"
        self.seen = 0
        self.true = False

    def names(self, who: str, *, live: bool = True) -> list[str]:
        found = [pod for pod in self.harness.pods.values() if pod.name.startswith(who) and not (live and pod.terminal)]
        return sorted(f"default/{pod.name}" for pod in found)

    def take(self, step: tuple[Any, ...]) -> None:
        harness = self.harness
        match step:
            case "make", who:
                self.made += 1
                scheduler = "gangsched" if who == "ours" else "default-scheduler"
                harness.add(member(f"{who}-{self.made:02}", "native", scheduler=scheduler))
            case "delete", who if self.names(who, live=False):
                harness.delete(self.names(who, live=False)[0])
            case "end", who, phase if self.names(who):
                harness.change(self.names(who)[0], phase=phase)
            case "need", number:
                seen = harness.foreign[NATIVE, KEY].phase
                assert isinstance(seen, SeenCondition)
                changed = read({"schedulingPolicy": {"gang": {"minCount": number}}}, uid=self.uid)
                harness.add(replace(changed, phase=replace(seen, generation=seen.generation + 1)))
            case ("remake",):
                harness.delete_foreign("native", "default/g")
                self.uid += "-"
                harness.add(read(uid=self.uid))
                self.true = False
            case ("room",):
                self.made += 1
                harness.add(node(f"n{self.made}", cpu=2))
            case ("restart",):
                harness.restart()
        harness.wait(40 if step == ("wait",) else 2)

    def check(self) -> None:
        gang = self.harness.machine.gangs.get(KEY)
        ours, theirs = self.names("ours"), self.names("theirs")
        told = {f"default/{pod.name}" for pod in gang.observed.foreign_pods.values()} if gang is not None else set()
        if gang is None or not gang.observed.pods:
            assert told == set()
        elif ours:
            assert told == set(theirs)
        for effect in self.harness.effects[self.seen :]:
            if isinstance(effect, PutCondition):
                assert not self.names("theirs", live=False), "a group with pods of another scheduler is written to"
                assert effect.uid == self.uid
                assert effect.condition.scheduled or not self.true, "True is taken back"
                self.true |= effect.condition.scheduled
        self.seen = len(self.harness.effects)


@given(STEPS)
def test_pods_of_the_other_scheduler_are_told_beside_ours_alone_and_true_is_for_ever(steps):
    life = Life()
    for step in steps:
        life.take(step)
        life.check()


@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 4), st.sampled_from([each.values[0] for each in SHOWN]))
def test_a_raised_min_count_is_bound_whole_or_not_at_all_whatever_a_new_leader_knows(least, added, room, shown):
    harness = running(least, shown)
    raised = native(least + added, 2, shown, changed=harness.now)
    harness.add(raised, *members(added, "native", first=least, created=harness.now))
    harness.restart()
    harness.wait(30, node("n2", cpu=room))
    assert len(harness.bound()) == (least + added if room >= added else least)
    harness.restart()
    harness.wait(30, node("n3", cpu=added))
    assert len(harness.bound()) == least + added
