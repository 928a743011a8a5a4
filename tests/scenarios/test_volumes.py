"""Gangs whose members use PersistentVolumeClaims: placed where their volumes are, or told which claim they wait for."""

from __future__ import annotations

import pytest

from gangsched.core.objects.shape import Disk
from gangsched.core.objects.volumes import CsiNode, StorageClass
from tests.builders import claim, group, node, pod, pods, volume
from tests.harness import Course, Harness

LATER = StorageClass("later", "csi", waits=True)


@pytest.fixture
def harness(course: Course) -> Harness:  # noqa: ARG001 - the course is set before the harness is made
    return Harness()


def nodes_of(harness: Harness, name: str = "a") -> list[str]:
    return [each.node for each in harness.pods.values() if each.name.startswith(name)]


def with_claims(number: int, name: str = "a", **fields):
    """Members, each with a claim of the same name as itself."""
    return [pod(f"default/{name}-{at}", group=name, volume_claims=[f"{name}-{at}"], **fields) for at in range(number)]


def test_a_gang_waits_as_a_whole_if_one_zone_is_too_small_for_its_volumes(harness: Harness) -> None:
    harness.add(node("a", cpu="9", labels={"zone": "a"}), node("b", cpu="1", labels={"zone": "b"}))
    harness.add(volume("v0", zone="a"), volume("v1", zone="b"), volume("v2", zone="b"))
    harness.add(*(claim(f"a-{at}", f"v{at}") for at in range(3)))
    harness.wait(3, group(min_member=3), *with_claims(3))
    assert harness.bound() == []
    assert harness.condition("default/a").reason in ("Unschedulable", "NeverFits")
    assert (
        "1 where the PersistentVolume v1 (node affinity zone=b) cannot be used"
        in harness.condition("default/a").message
    )
    harness.wait(3, node("b2", cpu="1", labels={"zone": "b"}))
    assert nodes_of(harness) in (["a", "b", "b2"], ["a", "b2", "b"])


@pytest.mark.parametrize(
    ("waiting", "reason", "told"),
    [
        ([], "VolumeNotReady", "Pod a-1 uses the PersistentVolumeClaim a-1, which does not exist: create it."),
        ([claim("a-1", storage_class="fast")], "VolumeNotReady", "a-1, which is not bound: "),
        ([claim("a-1", "v1", lost=True)], "VolumeNotReady", "a-1, whose PersistentVolume v1 is lost: "),
        ([claim("a-1", "v1", terminating=True)], "VolumeNotReady", "a-1, which is being deleted: "),
        ([claim("a-1", "v9")], "VolumeNotReady", "a-1, whose PersistentVolume v9 does not exist: "),
        (
            [claim("a-1", "old"), volume("old", in_tree="cinder")],
            "NotSupported",
            "a-1, whose PersistentVolume old (cinder) uses an in-tree plug-in that a CSI driver has replaced",
        ),
    ],
)
def test_a_claim_that_is_not_ready_is_named_and_wakes_the_gang_once_it_is(
    harness: Harness, waiting, reason, told
) -> None:
    harness.add(node(), group(min_member=2), *with_claims(2))
    harness.wait(3, volume("v0"), volume("v1"), claim("a-0", "v0"), *waiting)
    assert harness.bound() == []
    assert harness.condition("default/a").reason == reason
    assert told in harness.condition("default/a").message
    harness.wait(3, claim("a-1", "v1"))
    assert len(harness.bound()) == 2


def test_a_claim_that_no_pod_of_the_quorum_needs_keeps_back_only_its_pod(harness: Harness) -> None:
    harness.add(node(), group(min_member=2), *with_claims(3))
    harness.wait(3, volume("v0"), volume("v1"), volume("v2"), claim("a-0", "v0"), claim("a-2", "v2"))
    assert harness.bound() == ["default/a-0", "default/a-2"]
    harness.wait(3, claim("a-1", "v1"))
    assert len(harness.bound()) == 3


def test_an_ephemeral_volume_counts_once_its_claim_is_the_pods_own_and_bound(harness: Harness) -> None:
    harness.add(node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}))
    harness.wait(3, group(min_member=1), pod("a-0", own_volume_claims=["a-0-scratch"]))
    assert "kube-controller-manager has yet to create" in harness.condition("default/a").message
    harness.wait(60, volume("v", zone="b"), claim("a-0-scratch", "v", owner="another"))
    assert "was not made for the pod's ephemeral volume" in harness.condition("default/a").message
    harness.wait(3, claim("a-0-scratch", "v", owner="uid-default/a-0"))
    assert harness.pod("default/a-0").node == "n2"


def test_a_claim_for_a_single_pod_waits_for_its_user_to_end(harness: Harness) -> None:
    harness.add(node(), node("n2", unschedulable=True), pod("user", group="", node="n2", volume_claims=["c"]))
    harness.add(group(min_member=2), *pods("a", 1))
    harness.add(volume("v"), claim("c", "v", single_pod=True))
    harness.wait(3, pod("a-1", volume_claims=["c"]))
    assert harness.bound("default/a") == []
    assert "closed while another pod uses the PersistentVolumeClaim c" in harness.condition("default/a").message
    harness.delete("default/user")
    harness.wait(3)
    assert harness.bound("default/a") == ["default/a-0", "default/a-1"]


def test_what_is_known_of_volumes_outlives_the_lease(harness: Harness) -> None:
    harness.add(node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}))
    harness.wait(3, volume("v", zone="b"), claim("a-0", "v"), CsiNode("n1", (("csi", 0),)), LATER)
    harness.lead_again()
    harness.wait(3, group(min_member=1), *with_claims(1))
    assert nodes_of(harness) == ["n2"]
    harness.withdraw(LATER, CsiNode("n1", (("csi", 0),)))
    harness.wait(3)


@pytest.mark.parametrize(
    ("before", "after", "limits"),
    [("NeverFits", "Unschedulable", [1, 2]), ("Unschedulable", "NeverFits", [2, 1])],
    ids=["raised", "lowered"],
)
def test_whether_a_gang_with_disks_can_ever_fit_is_found_out_again_when_a_limit_changes(
    harness: Harness, before: str, after: str, limits: list[int]
) -> None:
    """The members of a gang whose disks a driver attaches have only a shape, but the limit of a node decides."""
    disks = [Disk("cinder", (), False, ("csi", f"v{at}")) for at in range(2)]
    harness.add(node("n1", cpu="8"), pod("default/busy", group="", node="n1", cpu="7"))
    harness.add(group(min_member=2, max_schedule_time_s=5000))
    harness.add(*(pod(f"default/a-{at}", group="a", cpu="1", disks=[disks[at]]) for at in range(2)))
    for limit, reason in zip(limits, (before, after), strict=True):
        harness.wait(600, CsiNode("n1", (("csi", limit),)))
        assert harness.condition("default/a").reason == reason
