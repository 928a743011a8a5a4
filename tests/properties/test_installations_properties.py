"""Two installations on one API server: once both have seen everything, each group has at most one owner."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.pod import PodPhase
from tests.builders import group, node, pod
from tests.installations import Installation, check_owners
from tests.properties.stories import effort

NAMES = st.sampled_from(("a", "b"))
SCHEDULERS = st.sampled_from(("gangsched", "green", "other", "default-scheduler", "volcano"))
ANNOTATED = st.sampled_from(("", "gangsched", "green", "nobody"))


class TwoInstallations(RuleBasedStateMachine):
    """Users, kubelets and changes of leader around two installations; the node has room for everything."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    @initialize(seed=st.none() | st.integers(0, 2**16))
    def begin(self, seed):
        self.one = Installation("gangsched", seed=seed)
        self.one.add(node("n1", cpu=512, pods=1000))
        self.two = Installation("green", beside=self.one, seed=seed)

    @rule(name=NAMES, scheduler=SCHEDULERS, minimum=st.none() | st.integers(1, 3), age=st.integers(0, 3))
    def add_pod(self, name, scheduler, minimum, age):
        self.number += 1
        said = Declaration(name, min_member=minimum)
        found = pod(f"x{self.number}", scheduler=scheduler, declaration=said, created=self.one.now - age)
        self.one.add(found)

    @rule(name=NAMES, annotated=ANNOTATED, minimum=st.integers(1, 3))
    def put_group(self, name, annotated, minimum):
        there = self.one.groups.get(GroupKey("default", name))
        self.number += there is None
        self.one.add(replace(there or group(name, min_member=minimum, uid=f"g{self.number}"), scheduler=annotated))

    @rule(name=NAMES)
    def drop_group(self, name):
        if GroupKey("default", name) in self.one.groups:
            self.one.delete_group(f"default/{name}")

    @rule(which=st.integers(0, 99), how=st.sampled_from(("gone", "terminating", *PodPhase)))
    def end_pod(self, which, how):
        pods = [*self.one.pods.values()]
        found = pods[which % len(pods)] if pods else None
        if found is None or found.terminal:
            return
        if how == "gone":
            self.one.delete(f"default/{found.name}")
        elif how == "terminating":
            self.one.add(replace(found, terminating=True))
        elif found.node:
            self.one.add(replace(found, phase=PodPhase(how)))

    @rule(which=st.booleans(), restarts=st.booleans())
    def act(self, which, restarts):
        one = self.one if which else self.two
        if restarts:
            one.restart()
        elif one.busy():
            one.step()

    @rule(seconds=st.sampled_from((0, 2, 30, 120)))
    def rest(self, seconds):
        self.one.wait_all(seconds)

    def teardown(self):
        self.one.wait_all(2)
        check_owners(self.one)
        served = {each: each.policy.scheduler_names[0] for each in self.one.peers}
        for each in self.one.peers:
            held = [uid for gang in each.machine.gangs.values() for uid in gang.operations.bindings]
            assert all(self.one.pods[uid].scheduler == served[each] for uid in held if uid in self.one.pods)
        for key, found in self.one.groups.items():
            owner = next((each for each in self.one.peers if key in each.machine.gangs), None)
            if owner is not None:
                assert found.status.scheduler == owner.policy.kept_as
                assert found.status.members == len(owner.machine.assessments[key].census.live)


TestTwoInstallations = TwoInstallations.TestCase
TestTwoInstallations.settings = effort(steps=30, usual=200)
