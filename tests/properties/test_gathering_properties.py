"""Who may leave is kept from call to call, and is always what would be found from nothing, whatever has happened."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gangsched.core.objects.disruption_budget import DisruptionBudget
from gangsched.core.objects.effects import Effect
from gangsched.core.objects.events import Event
from gangsched.core.objects.pod import Lifetime, Owner
from gangsched.core.objects.policy import Policy, Preemption
from gangsched.core.objects.shape import Requirement
from tests.builders import group, node, pod, pods
from tests.effort import examples
from tests.harness import Harness
from tests.preempting import SET, holder

DAEMON = Owner("DaemonSet", "d", "set-d", "apps")
CLASSES = ("low", "mid", "high")
TEAMS = ("red", "blue")


class Checked(Harness):
    """Has the state checked after each call, with all that is kept while a group waits for others to leave."""

    def _hand_over(self, events: list[Event]) -> list[Effect]:
        effects = super()._hand_over(events)
        assert self.machine.validate() == []
        return effects

    def check_capacity(self) -> None:
        """Nodes here have too little for the pods of the other scheduler."""


class Tale:
    """A cluster where a group waits all the time: of its two nodes one has a pod that never leaves."""

    def __init__(self, random: Random, *, disorder: bool) -> None:
        self.random, self.number = random, 0
        preemption = Preemption(min_runtime_s=random.choice((0.0, 0.0, 30.0)), all_victims=random.random() < 0.3)
        self.harness = Checked(Policy(preemption=preemption), seed=random.randrange(99) if disorder else None)
        for value, name in enumerate(CLASSES, 1):
            self.harness.put_class(name, 10 * value)
        self.harness.add(*(node(f"n{at}", cpu=4) for at in range(4)))
        self.harness.add(pod("daemon", group="", node="n0", cpu=1, owner=DAEMON))
        self.harness.settle(*holder(4, name="never", pods_with={"cpu": 4}, max_schedule_time_s=1e6))

    def name(self) -> str:
        self.number += 1
        return f"x{self.number}"

    def add_gang(self) -> None:
        name, size = self.name(), self.random.randint(1, 4)
        spec: dict[str, Any] = {"priority_class": self.random.choice(("", *CLASSES))}
        self.harness.add(group(name, min_member=self.random.randint(1, size), max_schedule_time_s=60.0, **spec))
        like: dict[str, Any] = {"cpu": self.random.randint(1, 2), "labels": {"team": self.random.choice(TEAMS)}}
        self.harness.add(*pods(name, size, owner=self.random.choice((None, SET)), **like))

    def add_pod(self) -> None:
        like: dict[str, Any] = {"cpu": self.random.randint(1, 2), "labels": {"team": self.random.choice(TEAMS)}}
        name, priority = self.name(), self.random.choice((0, 10, 20, 30))
        scheduler = self.random.choice(("gangsched", "gangsched", "other"))
        where = f"n{self.random.randrange(4)}" if scheduler == "other" else ""
        self.harness.add(pod(name, group="", priority=priority, scheduler=scheduler, node=where, **like))

    def change_pod(self) -> None:
        uid = self.random.choice(sorted(self.harness.pods))
        old = self.harness.pods[uid]
        way = self.random.randrange(4)
        if way == 0:
            self.harness.add(replace(old, lifetime=Lifetime(ready=not old.lifetime.ready)))
        elif way == 1:
            self.harness.add(replace(old, labels=(("team", self.random.choice(TEAMS)),)))
        elif way == 2 and old.node and not old.terminating:
            self.harness.add(replace(old, terminating=True, gone_by=self.harness.now + self.random.choice((5, 100))))
        elif "never" not in old.name:
            self.harness.delete(f"{old.namespace}/{old.name}")

    def change_group(self) -> None:
        names = [key.name for key in self.harness.groups if key.name != "never"]
        if names:
            name = f"default/{self.random.choice(sorted(names))}"
            way = self.random.randrange(3)
            if way == 0:
                self.harness.delete_group(name)
            elif way == 1:
                self.harness.change_spec(name, min_member=self.random.randint(1, 3))
            else:
                self.harness.change_spec(name, priority_class=self.random.choice(CLASSES))

    def change_budget(self) -> None:
        key = self.random.choice("ab")
        if f"default/{key}" in self.harness.budgets and self.random.random() < 0.4:
            self.harness.remove_budget(f"default/{key}")
            return
        team = (Requirement("team", "In", (self.random.choice(TEAMS),)),)
        self.harness.add(DisruptionBudget("default", key, self.random.choice((team, ())), self.random.randrange(3)))

    def change_class(self) -> None:
        self.harness.put_class(self.random.choice(CLASSES[:2]), self.random.choice((5, 10, 20, 25)))

    def change_nodes(self) -> None:
        name = f"n{self.random.randrange(1, 5)}"
        if name in self.harness.nodes and self.random.random() < 0.5:
            self.harness.delete_node(name)
        else:
            self.harness.add(node(name, cpu=self.random.choice((4, 5))))

    def pass_time(self) -> None:
        way = self.random.randrange(3)
        if way == 0:
            self.harness.end_terminating()
        elif way == 1:
            self.harness.run_pods()
        self.harness.wait(self.random.choice((0.5, 2.0, 40.0)))

    def go_on(self) -> None:
        """The next thing that happens; the machine may have time to react, or not yet."""
        steps = (self.add_gang, self.add_pod, self.change_pod, self.change_group, self.change_budget)
        self.random.choice((*steps, self.change_class, self.change_nodes, self.add_gang, *[self.pass_time] * 3))()
        for _ in range(self.random.randrange(3)):
            self.harness.step()


@given(st.integers(0, 2**32), st.booleans())
@settings(max_examples=examples(60), print_blob=True)
def test_who_may_leave_is_kept_as_it_would_be_found_from_nothing(seed, disorder):
    tale = Tale(Random(seed), disorder=disorder)
    for _ in range(25):
        tale.go_on()
    event(f"{min(len(tale.harness.evicted), 3)} or more were evicted")
