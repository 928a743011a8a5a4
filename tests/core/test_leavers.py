"""Those who leave are prepared once for several snapshots, and leave each as if they were let leave one by one."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gangsched.core.objects.devices import AllocatedDevice, Allocation, DeviceKind
from gangsched.core.objects.shape import PodTerm
from gangsched.core.planning import leavers
from gangsched.core.planning.capacity_snapshot import Snapshot
from gangsched.core.planning.filling import classify
from gangsched.core.planning.leavers import PreparedLeavers
from tests.builders import node, pod
from tests.gadgets import DRIVER, GPUS, device_claim, gpus

SHUNS = PodTerm(topology_key="zone", selector=(), namespaces=("default",))
NAMES = [f"p{at}" for at in range(9)]


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch):
    monkeypatch.setattr(leavers, "_MORE", 0)


def left(cluster, several, *others):
    """A snapshot that all have left but these."""
    snapshot = Snapshot(cluster)
    stay = {each.uid for each in others}
    several.leave(snapshot, {uid: each for uid, each in cluster.ledger.claims.items() if uid not in stay})
    return snapshot


def places(snapshot, asked):
    """How many pods like this one each node takes."""
    return snapshot.caps(classify(snapshot, [asked])[asked.uid]).tolist()


def world(cluster_of, **fields):
    nodes = [node(f"n{at}", cpu=1, labels={"zone": f"z{at}"}) for at in range(len(NAMES))]
    return cluster_of(*nodes, *(leaver(at, **fields) for at in range(len(NAMES))))


def leaver(at, **fields):
    return pod(NAMES[at], node=f"n{at}", cpu=1, terminating=True, **fields)


@pytest.mark.parametrize("fields", [{}, {"host_ports": [80]}, {"anti_affinity": [SHUNS]}], ids=str)
def test_nobody_leaves_who_is_gone(cluster_of, fields):
    """Regression: the host ports and anti-affinity of those who had ended since the last call were counted out again,
    which is an error.
    """
    cluster, several = world(cluster_of, **fields), PreparedLeavers()
    asked = pod("asked", cpu=1, **fields)
    assert places(left(cluster, several), asked) == [1] * 9
    cluster.remove_pod("uid-default/p0")
    assert places(left(cluster, several), asked) == [1] * 9
    other = replace(leaver(0, **fields), uid="another", terminating=False)
    cluster.set_pod(other)
    assert places(left(cluster, several, other), asked) == [0, *[1] * 8]


def test_those_who_changed_leave_as_they_are_now(cluster_of):
    cluster, several = world(cluster_of), PreparedLeavers()
    asked = pod("asked", cpu=1)
    left(cluster, several)
    cluster.set_pod(leaver(0, labels={"app": "a"}))
    assert places(left(cluster, several), asked) == [1] * 9
    cluster.remove_pod("uid-default/p0")
    cluster.set_node(node("n1", cpu=2))
    assert places(left(cluster, several), asked) == [1, 2, *[1] * 7]


def test_the_devices_of_a_claim_are_free_once_some_of_its_users_are_gone_and_the_others_leave(cluster_of):
    """Regression: one that was gone already counted as one that uses the claim still."""
    had = Allocation((AllocatedDevice("gpu", (DRIVER, "n0", "gpu-0")),))
    cluster, several = cluster_of(node("n0", cpu=9)), PreparedLeavers()
    for kind, key, found in (
        (DeviceKind.CLASS, ("", "gpu"), GPUS),
        (DeviceKind.SLICE, ("", "n0-gpus"), gpus("n0")),
        (DeviceKind.CLAIM, ("default", "c"), device_claim("c", allocation=had)),
        (DeviceKind.CLAIM, ("default", "d"), device_claim("d")),
    ):
        cluster.set_devices(kind, key, found)
    for name in NAMES:
        cluster.set_pod(pod(name, node="n0", terminating=True, device_claims=["c"]))
    asked = pod("asked", device_claims=["d"])
    cluster.set_pod(asked)
    left(cluster, several)
    cluster.remove_pod("uid-default/p0")
    assert places(left(cluster, several), asked) == [1]
