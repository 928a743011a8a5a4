"""A quorum that is decided and of which nothing is bound or on its way, because volumes are not ready yet.

What is asked for may change meanwhile: it is given up then, and the group is judged anew (contract rules 9 and 10).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gangsched.core.objects.declaration import Role, Topology
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.events import Event
from gangsched.core.objects.pod import Pod, PodPhase
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.core.objects.reasons import Reason
from gangsched.core.objects.record import Phase
from gangsched.core.objects.results import BindRefused, Refused
from gangsched.core.objects.volumes import StorageClass
from tests.builders import claim, group, node, pod, shape
from tests.builders import pods as pods_of
from tests.harness import Harness
from tests.preempting import SET
from tests.scenarios.test_late_members import labelled, replica, stateful_set
from tests.scenarios.test_undeclared import AUTO, job, pods_of_job
from tests.trees import leaf, members_of


def awaiting(*pods: Pod, declared: ForeignGroup | None = None) -> Harness:
    """A group of two whose nodes, in two zones, are chosen; its volumes are being provisioned."""
    nodes = [node(f"n{zone}", cpu=1, labels={"zone": zone}) for zone in "xy"]
    harness = Harness.of(*nodes, declared or group("a", min_member=2))
    harness.label_namespace("default", AUTO)
    harness.disks.busy = True
    harness.add(StorageClass("fast", "csi", waits=True, provisions=True))
    for each in pods or pods_of("a", 2):
        add_with_volume(harness, each)
    harness.wait(3)
    return harness


def add_with_volume(harness: Harness, member: Pod) -> None:
    """A member whose volume is provisioned once its node is chosen."""
    name = f"volume-{member.name}"
    harness.add(claim(f"default/{name}", storage_class="fast", uid=f"uid-{name}"))
    harness.add(replace(member, volume_claims=(name,)))


def provision(harness: Harness, *, wait_s: float = 60.0) -> None:
    """The volumes become ready."""
    harness.disks.busy = False
    harness.disks.work()
    harness.wait(wait_s)


def make_again(harness: Harness, *, least: int, at_once: bool) -> None:
    """The PodGroup is deleted and made again with this minimum, `at_once` before anybody has seen that it was gone."""
    harness.delete_group("default/a")
    if not at_once:
        harness.wait(1)
    harness.wait(3, group("a", min_member=least, uid="uid-2", created=harness.now))


@pytest.mark.parametrize(
    ("change", "phase"),
    [({"min_member": 3}, Phase.PENDING), ({"topology": Topology("zone")}, Phase.QUEUED)],
    ids=["minimum", "topology"],
)
def test_what_a_changed_spec_asks_for_applies_at_once(change: dict[str, Any], phase: Phase) -> None:
    """Regression: both were bound, in two zones, though the group required one, or needed three."""
    harness = awaiting()
    harness.change_spec("default/a", **change)
    harness.wait(30)
    provision(harness)
    assert (harness.bound(), harness.status("default/a").phase) == ([], phase)


@pytest.mark.parametrize(
    ("declare", "members"),
    [
        (lambda number: job("a", size=number), pods_of_job(2, "a")),
        (lambda number: leaf("a", least=number), members_of("a", 2)),
    ],
    ids=["Job", "native"],
)
def test_a_minimum_that_another_object_raises_applies_at_once(
    declare: Callable[[int], ForeignGroup], members: list[Pod]
) -> None:
    """Regression: both were bound, though their Job or their group asked for three by then."""
    harness = awaiting(*members, declared=declare(2))
    harness.wait(30, declare(3))
    provision(harness)
    assert harness.bound() == []


def test_what_changes_nothing_about_who_goes_where_is_no_reason() -> None:
    harness = awaiting()
    harness.change_spec("default/a", priority=7)
    provision(harness)
    assert harness.bound() == ["default/a-0", "default/a-1"]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_group_that_is_made_again_under_the_same_name_decides_anew(*, at_once: bool) -> None:
    """Regression: what its predecessor had decided was bound with the minimum of that."""
    harness = awaiting()
    make_again(harness, least=3, at_once=at_once)
    provision(harness)
    assert (harness.bound(), harness.status("default/a").phase) == ([], Phase.PENDING)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("lost", [False, True])
def test_what_is_reserved_beside_a_bound_quorum_is_given_up_with_the_group(*, at_once: bool, lost: bool) -> None:
    """Regression: a member above the minimum, or a replacement, was bound as half of the group that came next."""
    harness = Harness.settled(
        node("n", cpu=2), group("a", min_member=2 if lost else 1), *pods_of("a", 2 if lost else 1)
    )
    harness.add(StorageClass("fast", "csi", waits=True, provisions=True))
    if lost:
        harness.delete("default/a-1")
    harness.disks.busy = True
    harness.wait(2)
    add_with_volume(harness, pod("a-2", group="a", created=harness.now))
    harness.wait(3)
    make_again(harness, least=4, at_once=at_once)
    provision(harness)
    assert (harness.bound(), harness.status("default/a").phase) == (["default/a-0"], Phase.PENDING)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_minimum_that_is_raised_around_a_change_of_leader_applies_to_held_places(when: str) -> None:
    """Regression: both were bound and the group was Scheduled, though it asked for four before anything was bound."""

    def roles(number: int) -> tuple[Role, ...]:
        return (Role("w", number, template=shape(1)),)

    harness = Harness.of(node(cpu=9), group("a", min_member=2, roles=roles(2)))
    harness.add(StorageClass("fast", "csi", waits=True, provisions=True))
    harness.disks.busy = True
    add_with_volume(harness, pod("a-0", role="w"))
    harness.wait(5)
    assert harness.status("default/a").phase is Phase.RESERVED
    if when == "after":
        harness.restart()
        harness.wait(1)
    harness.change_spec("default/a", min_member=4, roles=roles(4))
    if when == "before":
        harness.restart()
    harness.wait(3)
    harness.add(pod("a-1", role="w"))
    provision(harness)
    assert not harness.status("default/a").scheduled_time


@pytest.mark.parametrize("change", ["labels", "replicas"])
def test_places_held_for_members_to_come_stay_where_no_more_is_asked_for(change: str) -> None:
    """Regression: they were given up for a new label of the first member, and whoever was ahead took the room."""
    harness = labelled(Harness())
    harness.add(node("n", cpu=4), stateful_set(replicas=4))
    harness.add(StorageClass("fast", "csi", waits=True, provisions=True))
    harness.disks.busy = True
    add_with_volume(harness, replica(0))
    harness.wait(5)
    harness.wait(3, group("b", min_member=3, priority=9, created=harness.now), *pods_of("b", 3, created=harness.now))
    if change == "labels":
        harness.change("default/web-0", labels=(("app", "web"), ("controller-revision-hash", "1"), ("x", "y")))
    else:
        harness.add(stateful_set(replicas=3))
    harness.wait(3)
    assert len(harness.gang("default/statefulset.web").operations.placeholders()) == (3 if change == "labels" else 2)
    assert harness.bound("default/b-") == []


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"roles": (Role("d", 1, template=shape(1)), Role("w", 2, template=shape(3)))}, Reason.NEVER_FITS),
        ({"topology": Topology("zone")}, Reason.NEVER_FITS),
    ],
    ids=["template", "topology"],
)
def test_places_for_members_to_come_follow_a_changed_spec(change: dict[str, Any], why: Reason, *, restarts: bool):
    """Regression: the first member was bound beside places that no other could take, or in another zone than those.

    With `restarts` nobody leads when the spec is changed.
    """
    roles = (Role("d", 1, template=shape(1)), Role("w", 2, template=shape(1)))
    nodes = [node(f"n{zone}", cpu=2, labels={"zone": zone}) for zone in "xy"]
    harness = Harness.of(*nodes, group("a", min_member=3, roles=roles))
    harness.add(StorageClass("fast", "csi", waits=True, provisions=True))
    harness.disks.busy = True
    add_with_volume(harness, pod("a-0", role="d"))
    harness.wait(5)
    harness.change_spec("default/a", **change)
    if restarts:
        harness.restart()
    harness.wait(5)
    provision(harness)
    assert (harness.bound(), harness.condition("default/a").reason) == ([], why)


@pytest.mark.without("all", why="the story has its own change of leader")
def test_a_quorum_of_which_a_member_has_ended_well_is_begun() -> None:
    """Regression: if the spec was changed while nobody led, a place was held for a successor of that member."""
    roles = (Role("d", 1, template=shape(1)), Role("w", 2, template=shape(1)))
    harness = Harness.of(node("n", cpu=3), group("a", min_member=3, roles=roles))
    harness.withhold = lambda effect: effect.name == "a-1"
    harness.add(pod("a-0", role="d"), pod("a-1", role="w"))
    harness.wait(5)
    harness.run_pods(PodPhase.SUCCEEDED)
    harness.wait(5)
    harness.withhold = lambda _: False
    harness.change_spec("default/a", priority=7)
    harness.restart()
    harness.wait(2)
    harness.add(pod("a-2", role="w"))
    harness.wait(2)
    assert harness.bound() == ["default/a-1", "default/a-2"]
    assert harness.condition("default/a").reason == Reason.SCHEDULED


@pytest.mark.without("all", why="the answers are lost in one order of events")
def test_bindings_without_an_answer_end_under_the_minimum_with_which_they_were_sent() -> None:
    """Regression: what was raised meanwhile had their places released; shown as bound later, all were evicted."""
    harness = Harness.settled(node(cpu=3), group("a", min_member=3))
    shown: list[Event] = []

    def lose_answer(effect: BindPod) -> BindRefused | None:
        if len(shown) == 3:
            return None
        before = len(harness.inbox)
        answer(effect)
        shown.extend(harness.inbox[before:])
        del harness.inbox[before:]
        return BindRefused(effect.uid, effect.node, Refused.UNAVAILABLE, "time-out")

    answer = harness._answer_bind  # noqa: SLF001 - the API server's own answer
    harness.refuse_bind = lose_answer
    harness.add(*pods_of("a", 5, owner=SET))
    harness.step()
    harness.change_spec("default/a", min_member=5)
    harness.step()
    harness.step()
    harness.inbox.extend(shown)
    harness.wait(100)
    assert (len(harness.bound()), harness.evicted) == (3, [])
