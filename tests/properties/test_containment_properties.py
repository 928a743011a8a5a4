"""A fault in one gang at any step of any story leaves no half-bound gang, no double count, and no gang parked."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from gangsched.core import placing, upkeep
from gangsched.core.containment import LONGEST_S, Containment
from gangsched.core.gang import bindings, clock, life, making, news, recovery, rollback, runs, unrecorded
from gangsched.core.objects.declaration import Role
from gangsched.core.objects.faults import Rebuilt
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.workload import Workload
from gangsched.core.status.writer import StatusWriter
from tests.builders import group, pod, shape
from tests.properties.stories import effort
from tests.properties.test_fault_properties import Faults
from tests.served import served_workload

STEPS = (
    (upkeep, "reconcile"),
    (bindings, "reconcile"),
    (bindings, "begin"),
    (bindings, "resend_due"),
    (bindings, "release"),
    (bindings, "note_bound"),
    (bindings, "note_refused"),
    (clock, "reset_back_off"),
    (life, "go_on"),
    (runs, "note_ended"),
    (making, "due"),
    (recovery, "resume"),
    (rollback, "note_result"),
    (placing, "place"),
    (placing, "place_each"),
    (placing.Placing, "place"),
    (upkeep, "conclude"),
    (news, "take_in"),
    (unrecorded, "find_begun"),
    (StatusWriter, "schedule"),
    (StatusWriter, "write"),
)
"""Functions called for one gang, except `rollback.go_on`: if that fails too, a part of the gang stays bound."""


WHOLE = ("gangsched.core.upkeep.reconcile", "gangsched.core.placing.place", "Placing.place", "StatusWriter.schedule")
"""Those of them that leave nothing half-done if they fail before their work."""
JOBS = "a"
OWNER, WORKLOAD = Owner("Job", "t", "uid-t", "batch"), Workload("job", "t", None, "uid-t")
JOB = served_workload("job", "t", {"parallelism": 2, "completions": 2})


class Raised(Exception):  # noqa: N818 - what a defect raises
    """A defect."""


class Contained(Faults):
    """The same story around a machine with defects."""

    replays = False

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.armed: dict[str, list[int]] = {}
        self.half_way = False

    @initialize()
    def break_it(self):
        for owner, name in STEPS:
            self.patch.setattr(owner, name, self.failing(f"{owner.__name__}.{name}", getattr(owner, name)))
        release = Containment.release

        def begin_again(containment, key):
            # The gang starts as after a restart: a quorum in progress shows as it does then.
            self.harness.rule_one.forget(self.harness.ledger)
            return release(containment, key)

        self.patch.setattr(Containment, "release", begin_again)

    def failing(self, name, real):
        def call(*args, **kwargs):
            waits = self.armed.get(name)
            if waits is None:
                return real(*args, **kwargs)
            waits[0] -= 1
            if waits[0] >= 0:
                return real(*args, **kwargs)
            if waits[0] <= -waits[1]:
                del self.armed[name]
            if waits[2]:
                real(*args, **kwargs)
            self.half_way = self.half_way or bool(waits[2]) or name not in WHOLE
            raise Raised(name)

        return call

    @rule(lost=st.integers(0, 2), busy=st.booleans())
    def lose_members_of_a_job(self, lost, busy):
        """A Job's group with a role template is bound and loses members, whose places are kept; its logic may fail."""
        harness = self.harness
        self.add_node(4)
        harness.add(JOB, group(JOBS, min_member=2, roles=(Role("w", 2, template=shape(1)),), uid=self.name()))
        for _ in range(2):
            harness.add(
                pod(self.name(), group=JOBS, role="w", created=harness.server_time, owner=OWNER, workload=WORKLOAD)
            )
        harness.wait(3.0)
        for found in [each for each in harness.pods.values() if each.workload == WORKLOAD and each.node][:lost]:
            harness.delete(f"default/{found.name}")
        if busy:
            self.fail((upkeep, "reconcile"), 0, 1, after=False)

    @invariant()
    def a_fault_before_anything_was_done_makes_no_accounts_anew(self):
        """A step that fails half-way may leave contradictions; one that has not begun must not."""
        found = self.harness.machine.take_faults() if hasattr(self, "harness") else []
        assert self.half_way or not [each for each in found if isinstance(each, Rebuilt)]
        self.half_way = False

    @rule(
        step=st.sampled_from(STEPS),
        calls=st.integers(0, 8),
        times=st.sampled_from((1, 1, 1, 2, 3)),
        after=st.booleans(),
    )
    def fail(self, step, calls, times, after):
        """Make the function fail after `calls` calls, `times` times, before or after its work."""
        owner, name = step
        self.armed[f"{owner.__name__}.{name}"] = [calls, times, after]

    def end(self) -> None:
        self.armed.clear()
        self.harness.crash_in = None
        self.harness.calm()
        self.harness.wait(2 * LONGEST_S)
        told = [group.status.conditions for group in self.harness.groups.values()]
        assert all(each.reason != "InternalError" for conditions in told for each in conditions)
        super().end()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.patch.undo()


@pytest.mark.faults
class TestContained(Contained.TestCase):  # type: ignore[misc, valid-type]
    """The entry point for the test runner."""


TestContained.settings = effort(steps=25, usual=80)
