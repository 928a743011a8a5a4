"""Common parts of stories of random steps: names, the choice of pods by number, pods that end, and time."""

from __future__ import annotations

import sys
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from msgspec.structs import replace

from gangsched.core.machine import Machine
from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.pod import Pod, PodPhase
from tests.builders import group
from tests.effort import examples
from tests.harness import Harness


class Story(RuleBasedStateMachine):
    """Steps around a machine in a `harness`, which asserts at each that the machine's state is sound."""

    harness: Harness

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def teardown(self) -> None:
        # A story may be without any step. And what a step leaves behind that has failed, with its decisions not carried
        # out, says nothing.
        if hasattr(self, "harness") and sys.exc_info()[0] is None:
            self.end()

    def end(self) -> None:
        """Check how the story ends, once all steps have been taken."""

    def name(self) -> str:
        """A name that no object has had yet."""
        self.number += 1
        return f"x{self.number}"

    def chosen(self, pod: Pod) -> bool:
        """Whether a step may choose the pod."""
        return not pod.terminal

    def some(self, which: int, *, bound: bool | None = None) -> Pod | None:
        """One of the existing pods; None if there is none."""
        pods = self.harness.pods.values()
        found = [pod for pod in pods if self.chosen(pod) and bound in (None, bool(pod.node))]
        return found[which % len(found)] if found else None

    def put_group(self, name: str, **spec: Any) -> None:
        """Create the PodGroup, or change it."""
        if GroupKey("default", name) in self.harness.groups:
            self.harness.change_spec(f"default/{name}", **spec)
        else:
            self.harness.add(group(name, created=self.harness.server_time, uid=self.name(), **spec))

    def drop_group(self, name: str) -> None:
        """Delete the PodGroup if it exists."""
        if GroupKey("default", name) in self.harness.groups:
            self.harness.delete_group(f"default/{name}")

    @rule(which=st.integers(0, 99), at_once=st.booleans())
    def delete_pod(self, which, at_once):
        found = self.some(which)
        if found is not None and (at_once or found.terminating):
            self.harness.delete(f"default/{found.name}")
        elif found is not None:
            self.harness.add(replace(found, terminating=True))

    @rule(which=st.integers(0, 99), phase=st.sampled_from((PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED)))
    def run(self, which, phase):
        found = self.some(which, bound=True)
        if found is not None:
            self.harness.add(replace(found, phase=phase))

    @rule()
    def step(self):
        self.harness.step()

    def check_replay(self) -> None:
        """The machine's decisions follow from its input alone."""
        other = Machine(self.harness.policy)
        for events, now, effects in self.harness.history:
            assert tuple(other.handle(events, now)) == effects, "a replay decides otherwise"


def effort(*, steps: int, usual: int = 150) -> settings:
    """The length and the number of the stories."""
    return settings(
        max_examples=examples(usual),
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
