"""An exception over an object that belongs to no gang sets that object aside, and everything else goes on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from gangsched.core.cluster.cache import Cluster
from gangsched.core.constraints.dynamic_resources import DynamicResources
from gangsched.core.constraints.inter_pod_affinity import InterPodAffinity
from gangsched.core.constraints.node_resources import NodeResources
from gangsched.core.constraints.taint_toleration import TaintToleration
from gangsched.core.intake import Intake
from gangsched.core.inventory.volume_index import Volumes
from gangsched.core.objects.declaration import Role
from gangsched.core.objects.faults import Fault, Rebuilt, SetAside
from gangsched.core.objects.node import Node
from gangsched.core.objects.offered_devices import ResourceSlice
from gangsched.core.objects.pod import Owner
from gangsched.core.objects.shape import HostPort
from gangsched.core.objects.volumes import StorageKind
from gangsched.core.objects.workload import Workload
from tests.builders import claim, group, node, pod, pods, shape, volume
from tests.harness import Harness
from tests.scenarios.test_containment import EvilError, Injector, in_reconcile
from tests.served import served_workload

pytestmark = [
    pytest.mark.faults,
    pytest.mark.without("restarts", "standbys", "leaderless", why="a new leader tries the object again"),
]

EVIL = {"evil": "yes"}
SLICE = ResourceSlice("evil", "gpu.example.com", "evil", node="n1")


@pytest.fixture
def injector(monkeypatch: pytest.MonkeyPatch) -> Injector:
    return Injector(monkeypatch)


def is_evil(node: Node) -> bool:
    return ("evil", "yes") in node.labels


def before_any_constraint(injector: Injector) -> None:
    injector.into(TaintToleration, "set_node", when=lambda _constraint, _row, node: is_evil(node))


def amid_the_constraints(injector: Injector) -> None:
    """Some constraints know the node, others do not."""
    injector.into(TaintToleration, "set_node", after=True, when=lambda _constraint, _row, node: is_evil(node))


def set_aside(harness: Harness) -> list[str]:
    return [found.name for found in harness.machine.take_faults() if isinstance(found, SetAside)]


@pytest.mark.parametrize("fault", [before_any_constraint, amid_the_constraints])
@pytest.mark.parametrize("listed", [False, True])
def test_a_node_over_which_a_constraint_fails_is_closed_and_the_others_are_used(injector, fault, listed):
    fault(injector)
    harness = Harness()
    harness.settle()
    harness.add(node("evil", cpu=64, labels=EVIL), node("good", cpu=4))
    harness.add(group("a", min_member=4), *pods("a", 4), group("b", min_member=1, created=1.0), *pods("b", 1))
    if listed:
        harness.inbox = harness.lists()
    harness.wait(2)
    assert {each.node for each in harness.pods.values()} == {"good", ""}
    assert len(harness.bound("default/a")) == 4
    assert harness.condition("default/b").reason in ("Unschedulable", "NeverFits")
    assert set_aside(harness) == ["Node evil"]
    assert harness.machine.set_aside() == ["Node evil (EvilError)"]
    assert harness.machine.stats().set_aside == {"Node": 1}
    assert harness.machine.validate() == []


def test_a_node_that_is_set_aside_is_tried_again_when_it_changes_and_not_before(injector):
    amid_the_constraints(injector)
    harness = Harness.waited(100, node("evil", cpu=4, labels=EVIL), group("a", min_member=4), *pods("a", 4))
    assert set_aside(harness) == ["Node evil"]
    times = injector.times
    harness.inbox = harness.lists()
    harness.wait(100)
    assert injector.times == times
    harness.wait(2, node("evil", cpu=8, labels=EVIL))
    assert injector.times == times + 1
    assert harness.machine.stats().set_aside == {"Node": 1}
    harness.wait(2, node("evil", cpu=4))
    assert harness.machine.set_aside() == []
    assert len(harness.bound("default/a")) == 4


@pytest.mark.parametrize(("fails", "faults"), [(1, [Rebuilt]), (99, [Rebuilt, SetAside])])
def test_a_node_whose_removal_fails_is_gone_all_the_same(injector, fails, faults):
    harness = Harness.settled(node("evil", cpu=64), node("good", cpu=2))
    injector.into(TaintToleration, "remove_node", when=lambda *_: injector.times < fails)
    harness.delete_node("evil")
    harness.wait(2, group("a", min_member=2), *pods("a", 2))
    assert {each.node for each in harness.pods.values()} == {"good"}
    assert harness.machine.cluster.nodes.keys() == {"good"}
    assert harness.machine.set_aside() == []
    assert [type(found) for found in harness.machine.take_faults()] == faults


@pytest.mark.without("disorder", why="the events are of one call")
def test_of_many_objects_that_fail_in_one_call_all_are_set_aside_and_none_that_is_sound(monkeypatch):
    """The first leaves the state half-changed, so that a sound node fails after it."""
    harness = Harness()
    harness.settle()
    broken: list[bool] = []
    real = TaintToleration.set_node

    def set_node(constraint: Any, row: int, node: Node) -> None:
        if is_evil(node):
            broken.append(True)
            raise EvilError("evil")
        if broken and constraint is harness.machine.cluster.constraints[1]:
            broken.clear()
            raise EvilError("because of the other")
        real(constraint, row, node)

    monkeypatch.setattr(TaintToleration, "set_node", set_node)
    harness.add(*(node(f"evil-{at}", labels=EVIL) for at in range(5)), node("good"), *pods("a", 2))
    harness.wait(2, group("a", min_member=2))
    assert harness.machine.stats().set_aside == {"Node": 5}
    assert len(harness.bound("default/a")) == 2


def test_a_bug_over_a_node_does_not_stop_a_new_leader(injector):
    amid_the_constraints(injector)
    harness = Harness()
    harness.wait(2, node("evil", cpu=64, labels=EVIL), node("good", cpu=4), group("a", min_member=2), *pods("a", 2))
    harness.restart()
    harness.wait(2, group("b", min_member=2), *pods("b", 2))
    assert len(harness.bound()) == 4
    harness.lead_again()
    harness.wait(2)
    assert harness.machine.set_aside() == ["Node evil (EvilError)"]
    harness.settle(node("evil"))
    assert harness.machine.set_aside() == []


def test_a_node_over_which_every_snapshot_fails_is_found_and_set_aside(injector):
    harness = Harness.waited(2, *(node(f"n{at}") for at in range(6)), group("a", min_member=2), *pods("a", 2))
    real = NodeResources.plan

    def plan(constraint: Any, *, emptied: bool) -> Any:
        nodes = constraint._world.nodes  # noqa: SLF001
        if "yes" in nodes.values("evil", np.arange(nodes.size)):
            raise EvilError("evil")
        return real(constraint, emptied=emptied)

    injector.monkeypatch.setattr(NodeResources, "plan", plan)
    harness.wait(2, node("n3", labels=EVIL), group("b", min_member=2), *pods("b", 2))
    assert harness.machine.set_aside() == ["Node n3 (EvilError)"]
    assert len(harness.bound()) == 4
    assert not [found for found in harness.machine.take_faults() if isinstance(found, Fault | Rebuilt)]


# Volumes, claims and devices


def in_volumes(injector: Injector, *, after: bool = False) -> None:
    injector.into(
        Volumes,
        "set",
        after=after,
        when=lambda _volumes, _kind, _key, found: found is not None and "evil" in found.key[1],
    )


def in_set(injector: Injector, owner: type, *, after: bool) -> None:
    def has_evil_name(_index: Any, _kind: Any, _key: Any, found: Any) -> bool:
        return found is not None and "evil" in found.key[1]

    injector.into(owner, "set", after=after, when=has_evil_name)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", [StorageKind.CLAIM, StorageKind.VOLUME])
def test_a_volume_or_claim_that_cannot_be_digested_counts_as_not_there(injector, after, kind):
    in_set(injector, Volumes, after=after)
    harness = Harness.of(node(cpu=8), group("a", min_member=1), pod("a-0", volume_claims=["evil-claim"]))
    harness.add(
        group("b", min_member=2), *pods("b", 2), group("c", min_member=1), pod("c-0", group="c", volume_claims=["c1"])
    )
    harness.add(claim("c1", volume="v1"), volume("v1"))
    harness.wait(2, claim("evil-claim", volume="evil") if kind is StorageKind.CLAIM else volume("evil"))
    assert harness.bound() == ["default/b-0", "default/b-1", "default/c-0"]
    assert len(harness.machine.set_aside()) == 1
    assert harness.machine.set_aside()[0].startswith(f"{kind.value} ")
    assert harness.machine.validate() == []
    injector.armed = False
    harness.wait(2, claim("evil-claim", volume="v1"))
    assert "default/a-0" in harness.bound()


def test_a_device_slice_over_which_every_snapshot_fails_is_found_and_set_aside(injector):
    injector.into(
        DynamicResources,
        "plan",
        when=lambda constraint, **_: bool(constraint._world.devices.pools()),  # noqa: SLF001
    )
    harness = Harness.of(node(cpu=8), node("n2"), group("b", min_member=2), *pods("b", 2))
    harness.wait(2, SLICE)
    assert harness.bound() == ["default/b-0", "default/b-1"]
    assert harness.machine.set_aside() == ["ResourceSlice evil (EvilError)"]


def test_an_exception_for_which_no_object_is_to_blame_ends_the_process(injector):
    harness = Harness()
    injector.into(type(harness.machine._state.unserved), "decide", when=lambda *_: True)  # noqa: SLF001
    harness.add(node())
    with pytest.raises(EvilError):
        harness.settle()


# Pods and groups of others


@pytest.mark.parametrize("mine", [False, True])
def test_a_pod_over_which_a_constraint_fails_still_takes_what_it_requests(injector, mine):
    injector.into(InterPodAffinity, "add", when=lambda _constraint, pod, _row: ("evil", "yes") in pod.labels)
    harness = Harness.of(node(cpu=4), group("a", min_member=2), *pods("a", 2), group("x", min_member=1))
    scheduler = "gangsched" if mine else "default-scheduler"
    there = pod("x", group="x" if mine else "", cpu=3, scheduler=scheduler, node="n1", labels=EVIL, host_ports=[80])
    harness.wait(2, there)
    assert harness.bound("default/a") == []
    assert harness.machine.set_aside() == ["Pod default/x (EvilError)"]
    assert harness.machine.validate() == []
    harness.wait(2, replace(there, labels=(("evil", "no"),)))
    assert harness.machine.set_aside() == []
    harness.delete("default/x")
    harness.wait(2)
    assert len(harness.bound("default/a")) == 2


def test_a_pod_that_fails_even_by_its_requests_alone_counts_as_not_there(injector):
    injector.into(Cluster, "set_pod", when=lambda _cluster, pod: pod.name == "x")
    there = pod("x", group="", scheduler="default-scheduler", node="n1")
    harness = Harness.waited(2, node(cpu=4), there, group("a", min_member=2), *pods("a", 2))
    assert len(harness.bound("default/a")) == 2
    assert there.uid not in harness.machine.cluster.pods
    assert harness.machine.set_aside() == ["Pod default/x (EvilError)"]


def test_a_pod_that_is_sound_again_and_is_now_what_counted_instead_of_it_is_set_aside_no_longer(injector):
    """Regression: what counts instead of a pod has no labels; a pod without any was taken for the former."""
    injector.into(InterPodAffinity, "add", when=lambda _constraint, pod, _row: ("evil", "yes") in pod.labels)
    harness = Harness.settled(node("n1", cpu=4))
    other = pod("other", group="", scheduler="default-scheduler", node="n1", cpu=1)
    with_port = replace(other.shape, host_ports=(HostPort(80),))
    harness.settle(replace(other, labels=tuple(EVIL.items()), shape=with_port))
    assert harness.machine.set_aside() == ["Pod default/other (EvilError)"]
    harness.settle(other)
    assert harness.machine.set_aside() == []


def test_a_group_of_another_installation_over_which_its_owner_cannot_be_told_is_set_aside(injector):
    injector.into(Intake, "_settle", when=lambda _intake, key: key.name == "evil")
    harness = Harness.waited(
        2, replace(group("evil", min_member=1), scheduler="green"), node(), group("b", min_member=1), *pods("b", 1)
    )
    assert harness.bound() == ["default/b-0"]
    assert harness.machine.set_aside() == ["PodGroup default/evil (EvilError)"]


# Kept places


def test_a_fault_in_a_group_with_a_template_and_kept_places_leaves_no_contradiction(injector):
    """Its members are bound, one is lost, and its place is kept when the group's logic fails."""
    harness = Harness()
    roles = (Role("w", 3, template=shape(1)),)
    harness.add(node(cpu=8), served_workload("job", "a", {"parallelism": 3}), group("a", min_member=3, roles=roles))
    owner, workload = Owner("Job", "a", "uid-a", "batch"), Workload("job", "a", None, "uid-a")
    harness.wait(3, *(pod(f"a-{at}", role="w", owner=owner, workload=workload) for at in range(3)))
    assert len(harness.bound()) == 3
    harness.delete("default/a-0")
    harness.step()
    assert [uid for uid in harness.machine.cluster.pods if uid.startswith("kept/")]
    in_reconcile(injector)
    harness.change("default/a-1", labels=(("x", "y"),))
    harness.wait(1)
    assert [type(found) for found in harness.machine.take_faults()] == [Fault]
    assert harness.machine.validate() == []
