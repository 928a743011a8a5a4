"""Unreadable input is neither dropped nor guessed: the group waits, and a condition and one Event say what to do."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Declaration
from gangsched.core.objects.events import Event, PriorityClassGone, PriorityClassSeen
from gangsched.core.objects.priority_class import PriorityClass
from gangsched.core.objects.results import BindRefused, Refused
from tests.builders import group, node, pod, pods
from tests.harness import Harness

SAYS_2 = Declaration(group="a", min_member=2)


def fixed_spec(**spec):
    return lambda harness: harness.change_spec("default/a", **spec)


def fixed_pod(**fields):
    return lambda harness: harness.change("default/a-0", **fields)


CASES = [
    pytest.param(
        [group("a", min_member=2, priority_class="gone"), *pods("a", 2)],
        "PriorityClassNotFound",
        "names the PriorityClass gone, which does not exist: create it or name another",
        lambda harness: tell(harness, PriorityClassSeen("gone", PriorityClass(5))),
        id="unknown PriorityClass",
    ),
    pytest.param(
        [group("a", min_member=2), pod("a-0", role="boss"), pod("a-1")],
        "RoleUnknown",
        "Pod a-0 names the role boss, but the group a has no roles: correct the label",
        fixed_pod(declaration=Declaration(group="a")),
        id="unknown role",
    ),
    pytest.param(
        pods("a", 2),
        "PodGroupNotFound",
        "There is no PodGroup a in namespace default: create it, or give the pods",
        lambda harness: harness.add(group("a", min_member=2)),
        id="label without PodGroup and annotations",
    ),
    pytest.param(
        [group("a", min_member=2), pod("a-0", declaration=Declaration(group="a", min_member=3)), pod("a-1")],
        "Contradiction",
        "The PodGroup says minMember 2, the pods say 3 by the annotation gangsched.io/min-member",
        fixed_pod(declaration=SAYS_2),
        id="PodGroup and annotation differ in minMember",
    ),
    pytest.param(
        [
            group("a", min_member=2, max_schedule_time_s=60.0),
            pod("a-0", declaration=Declaration(group="a", max_schedule_time_s=30.0)),
            pod("a-1"),
        ],
        "Contradiction",
        "The PodGroup says maxScheduleTime 1m, the pods say 30s by the annotation gangsched.io/max-schedule-time",
        fixed_spec(max_schedule_time_s=30.0),
        id="PodGroup and annotation differ in maxScheduleTime",
    ),
    pytest.param(
        [pod("a-0", declaration=Declaration(group="a", min_member=1)), pod("a-1", declaration=SAYS_2)],
        "Contradiction",
        "Members disagree on the annotation gangsched.io/min-member: 1, 2; give all members the same value",
        fixed_pod(declaration=SAYS_2),
        id="annotations differ",
    ),
    pytest.param(
        [
            pod("a-0", declaration=Declaration(group="a", min_member=2, max_schedule_time_s=5.0)),
            pod("a-1", declaration=Declaration(group="a", min_member=2, max_schedule_time_s=6.0)),
        ],
        "Contradiction",
        "Members disagree on the annotation gangsched.io/max-schedule-time: 5s, 6s",
        fixed_pod(declaration=Declaration(group="a", min_member=2, max_schedule_time_s=6.0)),
        id="annotated times differ",
    ),
    pytest.param(
        [group("a", error="spec.minMember: cannot be read"), *pods("a", 2)],
        "InvalidDeclaration",
        "spec.minMember: cannot be read",
        lambda harness: harness.add(replace(group("a", min_member=2), generation=2)),
        id="unreadable PodGroup",
    ),
    pytest.param(
        [pod("a-0", declaration=Declaration(group="a", error="min-member is 'x'")), pod("a-1", declaration=SAYS_2)],
        "InvalidDeclaration",
        "Pod a-0: min-member is 'x'",
        fixed_pod(declaration=SAYS_2),
        id="unreadable annotation",
    ),
    pytest.param(
        [group("a", min_member=2), pod("a-0", unsupported=["spec.volumes (PersistentVolumeClaim)"]), pod("a-1")],
        "NotSupported",
        "Pod a-0 uses spec.volumes (PersistentVolumeClaim), which this version of gangsched does not support",
        lambda harness: (harness.delete("default/a-0"), harness.add(pod("a-2"))),
        id="unsupported constraint of a pod",
    ),
    pytest.param(
        [group("a", min_member=2, strategy="acme.example/best"), *pods("a", 2)],
        "StrategyUnknown",
        "The placement strategy acme.example/best is not installed: install the plug-in",
        fixed_spec(strategy="Spread"),
        id="unknown strategy",
    ),
]


def tell(harness: Harness, event: Event) -> None:
    """Send the machine an event about an object that the harness does not store."""
    harness.inbox.append(event)


@pytest.mark.parametrize(("things", "reason", "says", "fix"), CASES)
def test_the_group_waits_with_a_condition_and_one_event_and_is_bound_once_it_is_put_right(things, reason, says, fix):
    harness = Harness.waited(120, node(), *things)
    assert harness.bound() == []
    if harness.groups:
        assert harness.status("default/a").phase == "Pending"
        condition = harness.condition("default/a")
        assert condition.reason == reason
        assert says in condition.message
    for found in harness.pods.values():
        assert found.condition_reason == reason
        assert found.condition_message.startswith("Group a: ")
        assert says in found.condition_message
    (event,) = harness.emitted
    assert (event.reason, event.type) == (reason, "Warning")
    assert says in event.note
    harness.restart()
    harness.wait(60)
    assert len(harness.emitted) == 1
    fix(harness)
    harness.settle()
    assert len(harness.bound()) == 2


@pytest.mark.parametrize(
    ("newcomer", "reason"),
    [
        (pod("a-9", role="boss"), "RoleUnknown"),
        (pod("a-9", unsupported=["spec.resourceClaims"]), "NotSupported"),
        (pod("a-9", declaration=Declaration(group="a", min_member=7)), "Contradiction"),
    ],
)
def test_a_scheduled_group_keeps_what_is_bound_and_says_why_the_newcomer_waits(newcomer, reason):
    harness = Harness.waited(2, node(), group("a", min_member=2), *pods("a", 2))
    harness.wait(60, newcomer)
    assert len(harness.bound()) == 2
    assert harness.status("default/a").phase == "Scheduled"
    assert harness.pod("default/a-9").condition_reason == reason
    assert (
        "a-9" in harness.pod("default/a-9").condition_message
        or "PodGroup says" in harness.pod("default/a-9").condition_message
    )
    assert len(harness.events(reason)) == 1
    harness.restart()
    harness.wait(60)
    harness.delete("default/a-9")
    harness.wait(60)
    assert len(harness.events(reason)) == 1
    assert len(harness.events("Scheduled")) == 1


def test_a_contradiction_that_appears_in_mid_flight_stops_every_further_binding_until_it_is_gone():
    harness = Harness()
    harness.refuse_bind = lambda effect: (
        BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "no") if effect.name == "a-1" else None
    )
    harness.settle(node(), group("a", min_member=2), *pods("a", 2))
    assert len(harness.bound()) == 1
    harness.refuse_bind = lambda _: None
    harness.change("default/a-0", declaration=Declaration(group="a", min_member=5))
    harness.wait(60)
    assert len(harness.bound()) == 1
    harness.change("default/a-0", declaration=Declaration(group="a"))
    harness.settle()
    assert len(harness.bound()) == 2


def test_a_priority_class_that_vanishes_keeps_the_group_waiting():
    harness = Harness()
    tell(harness, PriorityClassSeen("c", PriorityClass(5)))
    harness.wait(2, group("a", min_member=1, priority_class="c"), *pods("a", 1, cpu=4))
    tell(harness, PriorityClassGone("c"))
    harness.wait(2, node())
    assert harness.bound() == []
    assert harness.condition("default/a").reason == "PriorityClassNotFound"
