"""What `gangsched explain` says of a group that is Degraded, or whose bindings or evictions the API server refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gangsched.cli.explain_text import lines
from gangsched.core.objects.declaration import Declaration, GroupKey
from gangsched.core.objects.events import Synced
from gangsched.core.objects.policy import Policy
from gangsched.core.objects.results import BindRefused, EvictionRefused, Refused, Spared
from gangsched.views.diagnosed import Diagnosis, from_status
from gangsched.views.diagnosis import from_cluster
from gangsched.views.findings import FITS
from gangsched.views.group_row import of_declared
from tests.builders import group, node, pod, pods
from tests.harness import Harness
from tests.scenarios.test_rollback import half_bound, never

KEY = GroupKey("default", "a")


def explained(harness: Harness) -> Diagnosis:
    """From a copy of the cluster."""
    found = from_cluster([*harness.lists(), Synced()], KEY, policy=Policy(), now=harness.now)
    assert found is not None
    return found


def two_of_three_refused() -> Harness:
    """Their evictions are refused too."""
    harness = half_bound()
    harness.refuse_eviction = lambda effect: EvictionRefused(effect.uid, Spared.UNAVAILABLE, "try later")
    harness.wait(30)
    return harness


def two_of_three_left() -> Harness:
    """No controller would create them again."""
    harness = half_bound(None)
    harness.wait(30)
    return harness


def scheduled(cpu: int) -> Harness:
    return Harness.waited(2, group("a", min_member=2, created=50.0), *pods("a", 2), node("n1", cpu=cpu))


def one_of_two_lost() -> Harness:
    harness = scheduled(2)
    harness.delete("default/a-0")
    harness.wait(5)
    return harness


def binding_refused() -> Harness:
    harness = Harness()
    harness.refuse_bind = never("a-0")
    harness.wait(5, node("n1", cpu=3), group("a", min_member=2), *pods("a", 2))
    return harness


@pytest.mark.parametrize(
    ("told", "phase", "reason"),
    [
        (two_of_three_refused, "Degraded", "EvictionRefused"),
        (two_of_three_left, "Degraded", "PartlyBound"),
        (one_of_two_lost, "Degraded", "MembersMissing"),
        (binding_refused, "Reserved", "BindingRefused"),
    ],
)
def test_it_says_what_the_operator_says_from_a_copy_from_the_status_and_in_a_list(
    told: Callable[[], Harness], phase: str, reason: str
):
    """Regression: members that are left in place were said to be evicted, and groups that are refused to fit."""
    harness = told()
    there = harness.group("default/a")
    written = harness.condition("default/a", "Degraded" if phase == "Degraded" else "Scheduled")
    for found in (explained(harness), from_status(there), of_declared(there)):
        assert (found.phase, found.reason, found.message) == (phase, reason, written.message)
    assert explained(harness).helps == ()
    assert from_status(there).since == written.since


def test_the_cause_is_told_beside_the_room_that_the_rest_of_the_quorum_lacks():
    harness = two_of_three_left()
    harness.add(pod("b-0", group="", node="n1", scheduler="other"))
    found = explained(harness)
    assert found.shortfall is not None
    assert (found.phase, found.reason) == ("Degraded", "PartlyBound")
    assert f"  why         {found.message}" in list(lines(found, width=1000))


def test_a_gang_without_a_podgroup_lacks_members_too():
    """Nothing records that it is Degraded; its bound members show it."""
    harness = Harness.waited(2, *pods("a", 2, declaration=Declaration(group="a", min_member=2)), node("n1", cpu=2))
    harness.delete("default/a-0")
    harness.wait(5)
    found = explained(harness)
    assert (found.phase, found.reason, found.members, found.bound) == ("Degraded", "MembersMissing", 1, 1)


@pytest.mark.parametrize("cpu", [20, 4])
def test_a_raised_minimum_is_told_as_what_is_needed_and_why(cpu: int):
    """Regression: "11 exist, 2 needed"."""
    harness = scheduled(cpu)
    harness.change_spec("default/a", min_member=12)
    harness.wait(5, *pods("a", 9, first=2))
    written = harness.condition("default/a", "Degraded")
    assert (written.status, written.reason) == (False, "MinimumRaised")
    for found in (explained(harness), from_status(harness.group("default/a"))):
        assert (found.phase, found.members, found.minimum, found.bound) == ("Scheduled", 11, 12, 2)
        assert list(found.besides) == [written.message]


def test_what_fits_and_is_refused_nowhere_is_said_to_fit_with_what_to_look_at():
    harness = Harness.waited(2, node("n1", cpu=1), group("a", min_member=2), *pods("a", 2))
    harness.nodes["n1"] = node("n1", cpu=2)
    found = explained(harness)
    assert (found.message, len(found.helps)) == (FITS, 1)


def test_a_refused_binding_says_what_the_api_server_says():
    harness = Harness()
    harness.refuse_bind = lambda effect: BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "policy says no")
    harness.wait(5, node("n1", cpu=3), group("a", min_member=2), *pods("a", 2))
    assert "policy says no" in explained(harness).message
