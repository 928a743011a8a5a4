"""Whatever comes in one batch, in whatever order: the accounts agree after each call, and no wake-up is lost.

Pods move between groups while their bindings are on their way or refused, PodGroups are replaced while results arrive,
nodes go, leaders change, and calls end before they have reached everything.
"""

from __future__ import annotations

from random import Random
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.core.planning import budget as units
from tests.builders import group, key, node, pod
from tests.effort import examples
from tests.harness import Harness

NAMES = ("a", "b", "c")
WHY = (Refused.UNAVAILABLE, Refused.UNAVAILABLE, Refused.FORBIDDEN)


class Story:
    """A cluster to which random things happen, several at a time."""

    def __init__(self, draw: Random) -> None:
        self.draw, self.harness, self.made = draw, Harness(), 0
        self.priority = {name: draw.choice((0, 0, 5, 10)) for name in NAMES}
        self.unlucky = draw.choice((0.0, 0.3, 0.6))
        self.harness.refuse_bind = self.refuse
        self.harness.withhold = self.withhold
        self.sent: set[str] = set()
        self.harness.add(*(node(f"n{at}", cpu=draw.choice((2, 4, 8))) for at in range(draw.randint(1, 4))))

    def withhold(self, effect: BindPod) -> bool:
        self.sent.add(effect.uid)
        return self.draw.random() < self.unlucky / 2

    def refuse(self, effect: BindPod) -> BindRefused | None:
        if self.draw.random() >= self.unlucky:
            return None
        return BindRefused(effect.uid, effect.node, self.draw.choice(WHY), "no")

    def some(self, *, bound: bool = False) -> Pod | None:
        there = sorted(self.harness.pods.values(), key=lambda each: each.uid)
        found = [each for each in there if not each.terminal and (each.node or not bound)]
        return self.draw.choice(found) if found else None

    def happen(self) -> None:
        deeds = (self.come, self.come, self.go, self.end, self.move, self.move, self.declare, self.node, self.answer)
        self.draw.choice(deeds)()

    def come(self) -> None:
        for _ in range(self.draw.randint(1, 3)):
            name, self.made = self.draw.choice(NAMES), self.made + 1
            cpu, made = self.draw.choice((1, 1, 2, 3)), self.harness.now
            found = pod(f"{name}-{self.made}", group=name, cpu=cpu, priority=self.priority[name], created=made)
            self.harness.add(found)

    def go(self) -> None:
        found = self.some()
        if found is not None and self.draw.random() < 0.5:
            self.harness.delete(f"default/{found.name}")
        elif found is not None:
            self.harness.change(f"default/{found.name}", terminating=True)

    def end(self) -> None:
        found = self.some(bound=True)
        if found is not None:
            phase = self.draw.choice((PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED))
            self.harness.change(f"default/{found.name}", phase=phase)

    def move(self) -> None:
        """Most often a pod whose binding is on its way."""
        found, name = self.some(), self.draw.choice(NAMES)
        on_its_way = sorted(self.sent & self.harness.pods.keys())
        if on_its_way and self.draw.random() < 0.7:
            found = self.harness.pods[self.draw.choice(on_its_way)]
        if found is not None:
            said = Declaration(group=name)
            self.harness.change(f"default/{found.name}", declaration=said, priority=self.priority[name])

    def declare(self) -> None:
        name, least = self.draw.choice(NAMES), self.draw.randint(1, 4)
        there = key(name) in self.harness.groups
        if there and self.draw.random() < 0.4:
            self.harness.change_spec(f"default/{name}", min_member=least)
            return
        if there:
            self.harness.delete_group(f"default/{name}")
        if not there or self.draw.random() < 0.6:
            self.made += 1
            time_s = self.draw.choice((20.0, 100.0, 1000.0))
            made = group(
                name, min_member=least, uid=f"g-{self.made}", created=self.harness.now, max_schedule_time_s=time_s
            )
            self.harness.add(made)

    def node(self) -> None:
        name = f"n{self.draw.randint(0, 4)}"
        if name not in self.harness.nodes:
            self.harness.add(node(name, cpu=self.draw.choice((4, 8))))
        elif self.draw.random() < 0.3:
            self.harness.delete_node(name)

    def answer(self) -> None:
        self.draw.choice((self.harness.send_withheld, self.harness.end_terminating, self.harness.run_pods))()

    def go_on(self) -> None:
        for _ in range(self.draw.randint(1, 5)):
            self.happen()
        chance = self.draw.random()
        if chance < 0.75:
            self.harness.step()
        elif chance < 0.9:
            self.harness.settle(rounds=400)
        else:
            self.harness.settle(rounds=400)
            self.harness.restart()
        if self.draw.random() < 0.3:
            self.harness.wait(self.draw.choice((1.0, 5.0, 30.0)))
        assert self.harness.machine.take_faults() == []

    def rest(self) -> None:
        self.harness.send_withheld()
        self.harness.withhold, self.harness.refuse_bind = (lambda _: False), (lambda _: None)
        self.harness.end_terminating()
        self.harness.settle(rounds=400)
        self.harness.wait(2000)


@given(st.randoms(use_true_random=False), st.booleans())
@settings(max_examples=examples(60))
@pytest.mark.slow
def test_the_accounts_agree_after_each_batch_and_a_new_leader_finds_nothing_more_to_bind(draw, hurried):
    with mock.patch.object(units, "CALL", 25_000 if hurried else units.CALL):
        story = Story(draw)
        for _ in range(draw.randint(4, 12)):
            story.go_on()
        story.rest()
        before = story.harness.bound()
        story.harness.restart()
        story.harness.settle(rounds=400)
        story.harness.wait(50)
        assert story.harness.bound() == before
