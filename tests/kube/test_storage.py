from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.core.objects.shape import Disk, NodeTerm, Requirement
from gangsched.core.objects.volumes import CsiDriver, CsiNode, StorageCapacity, StorageClass, Volume, VolumeClaim
from gangsched.kube import wire
from gangsched.kube.reading import storage_values
from gangsched.kube.reading.pod_values import pod_value
from gangsched.kube.wire import storage_objects as storage_wire

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def decoded(kind: type, found: dict[str, Any]) -> Any:
    meta = {"name": "x", "namespace": "team"} | found.get("metadata", {})
    return msgspec.json.decode(msgspec.json.encode(found | {"metadata": meta}), type=kind)


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        ({}, {}),
        ({"spec": {"volumeName": "v"}}, {"volume": "v"}),
        ({"spec": {"volumeName": "v"}, "metadata": {"annotations": BOUND}}, {"volume": "v", "bound": True}),
        ({"spec": {"storageClassName": "a"}}, {"storage_class": "a"}),
        (
            {
                "spec": {"storageClassName": "a"},
                "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "b"}},
            },
            {"storage_class": "b"},
        ),
        ({"spec": {"accessModes": ["B", "A"]}}, {"modes": ("A", "B")}),
        ({"spec": {"accessModes": ["ReadWriteOncePod"], "volumeName": "v"}}, {"single_pod": True, "volume": "v"}),
        ({"spec": {"resources": {"requests": {"storage": "1Ki"}}}}, {"size": 1024}),
        ({"spec": {"resources": {"requests": {"storage": "1Ki"}}, "volumeName": "v"}}, {"volume": "v"}),
        ({"spec": {"resources": {"requests": {"storage": "much"}}}}, {}),
        ({"spec": {"volumeMode": "Block"}}, {"block": True}),
        (
            {
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
                }
            },
            {"selector": (Requirement("a", "In", ("b",)), Requirement("c", "Exists"))},
        ),
        (
            {"metadata": {"uid": "u", "annotations": {storage_values.SELECTED_NODE: "n", storage_values.MARK: "p"}}},
            {"uid": "u", "selected": "n", "ours": True},
        ),
        ({"status": {"phase": "Bound"}}, {}),
        ({"status": {"phase": "Lost"}}, {"lost": True}),
        ({"metadata": {"deletionTimestamp": "2000-01-01T00:00:00Z"}}, {"terminating": True}),
        ({"metadata": {"ownerReferences": [{"uid": "u", "controller": True}]}}, {"owner": "u"}),
        ({"metadata": {"ownerReferences": [{"uid": "u"}]}}, {}),
    ],
)
def test_a_claim(found, fields):
    assert storage_values.volume_claim(decoded(storage_wire.VolumeClaim, found)) == VolumeClaim("team", "x", **fields)


def in_zone(**fields: Any) -> dict[str, Any]:
    return {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [fields]}}}}


ZONE_A = {"key": "zone", "operator": "In", "values": ["a"]}
NAMED = {"key": "metadata.name", "operator": "In", "values": ["n"]}
ANYWHERE = Requirement("", "DoesNotExist")


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        ({}, {}),
        ({"spec": {"nodeAffinity": {}}}, {}),
        ({"spec": {"nodeAffinity": {"required": {}}}}, {"node_affinity": ()}),
        (in_zone(), {"node_affinity": (NodeTerm(),)}),
        (
            in_zone(matchExpressions=[ZONE_A], matchFields=[NAMED]),
            {"node_affinity": (NodeTerm((Requirement("zone", "In", ("a",)),)),)},
        ),
        (in_zone(matchFields=[NAMED]), {"node_affinity": (NodeTerm((ANYWHERE,)),)}),
        (
            {"spec": {"csi": {"driver": "d", "volumeHandle": "h"}}},
            {"attachment": ("d", "h")},
        ),
        ({"spec": {"nfs": {"server": "s", "path": "/"}}}, {}),
        (
            {"spec": {"gcePersistentDisk": {"pdName": "d"}}},
            {
                "attachment": ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"),
                "in_tree": "gcePersistentDisk",
            },
        ),
        (
            {"spec": {"awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}},
            {"attachment": ("ebs.csi.aws.com", "vol-1"), "in_tree": "awsElasticBlockStore"},
        ),
        (
            {"spec": {"azureDisk": {"diskName": "d", "diskURI": "/disks/d"}}},
            {"attachment": ("disk.csi.azure.com", "/disks/d"), "in_tree": "azureDisk"},
        ),
        (
            {"spec": {"cinder": {"volumeID": "v"}}, "status": {"phase": "Bound"}},
            {"attachment": ("cinder.csi.openstack.org", "v"), "in_tree": "cinder"},
        ),
        (
            {"spec": {"portworxVolume": {"volumeID": "v"}}},
            {"attachment": ("pxd.portworx.com", "v"), "in_tree": "portworxVolume"},
        ),
        ({"spec": {"vsphereVolume": {"volumePath": "p"}}}, {}),
        ({"spec": {"azureFile": {"secretName": "s", "shareName": "h"}}}, {}),
        (
            {"metadata": {"labels": {"topology.kubernetes.io/zone": "b__a", "app": "x"}}},
            {"zones": (("topology.kubernetes.io/zone", ("a", "b")),)},
        ),
        ({"metadata": {"labels": {"topology.kubernetes.io/region": "r____q"}}}, {}),
        ({"metadata": {"labels": {"app": "x"}}}, {}),
        (
            {
                "metadata": {"labels": {"app": "x"}, "annotations": {storage_values.MARK: "u"}},
                "spec": {
                    "capacity": {"storage": "1Ki"},
                    "accessModes": ["A"],
                    "volumeMode": "Block",
                    "storageClassName": "fast",
                    "claimRef": {"namespace": "team", "name": "c", "uid": "u"},
                },
                "status": {"phase": "Available"},
            },
            {
                "available": True,
                "size": 1024,
                "modes": ("A",),
                "block": True,
                "storage_class": "fast",
                "labels": (("app", "x"),),
                "claimed_by": ("team", "c", "u"),
                "ours": True,
            },
        ),
        ({"spec": {"capacity": {"storage": "1Ki"}}, "status": {"phase": "Bound"}}, {}),
        (
            {
                "spec": {"volumeAttributesClassName": "gold", "claimRef": {"namespace": "team", "name": "c"}},
                "status": {"phase": "Released"},
            },
            {"available": True, "attributes": "gold", "claimed_by": ("team", "c", "")},
        ),
        (
            {"spec": {"claimRef": {"namespace": "team", "name": "c", "uid": "u"}}, "status": {"phase": "Bound"}},
            {},
        ),
    ],
)
def test_a_volume(found, fields):
    assert storage_values.volume(decoded(storage_wire.PersistentVolume, found)) == Volume("x", **fields)


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        ({}, {}),
        ({"nodeTopology": {}}, {"topology": NodeTerm((ANYWHERE,))}),
        (
            {"nodeTopology": {"matchLabels": {"b": "x", "a": "y"}, "matchExpressions": [ZONE_A]}},
            {
                "topology": NodeTerm(
                    (Requirement("a", "In", ("y",)), Requirement("b", "In", ("x",)), Requirement("zone", "In", ("a",)))
                )
            },
        ),
        ({"nodeTopology": {"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["1"]}]}}, {}),
        ({"capacity": "1Ki", "storageClassName": "fast"}, {"capacity": 1024, "storage_class": "fast"}),
        ({"maximumVolumeSize": "0"}, {"largest": 0}),
        ({"capacity": "much"}, {"capacity": 0}),
    ],
)
def test_a_storage_capacity(found, fields):
    known = storage_values.storage_capacity(decoded(storage_wire.StorageCapacity, found))
    assert known == StorageCapacity("team", "x", **fields)


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({}, {}),
        ({"storageCapacity": True, "preventPodSchedulingIfMissing": False}, {"capacity": True}),
        ({"storageCapacity": False, "preventPodSchedulingIfMissing": True}, {"demanding": True}),
    ],
)
def test_a_driver_says_where_there_is_storage_and_demands_to_be_on_the_node_or_does_not(spec, fields):
    assert storage_values.csi_driver(decoded(storage_wire.CsiDriver, {"spec": spec})) == CsiDriver("x", **fields)
    assert storage_values.csi_driver(decoded(storage_wire.CsiDriver, {})) == CsiDriver("x")


@pytest.mark.parametrize(
    ("found", "fields"),
    [
        ({"provisioner": "d"}, {"driver": "d", "provisions": True}),
        ({"provisioner": "kubernetes.io/no-provisioner"}, {"driver": "kubernetes.io/no-provisioner"}),
        ({"provisioner": "kubernetes.io/aws-ebs"}, {"driver": "ebs.csi.aws.com", "provisions": True, "in_tree": True}),
        ({"volumeBindingMode": "Immediate"}, {}),
        ({"volumeBindingMode": "WaitForFirstConsumer"}, {"waits": True}),
        (
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a", "b"]}]}, {}]},
            {"topologies": (NodeTerm((Requirement("zone", "In", ("a", "b")),)), NodeTerm())},
        ),
    ],
)
def test_a_storage_class(found, fields):
    assert storage_values.storage_class(decoded(storage_wire.StorageClass, found)) == StorageClass("x", **fields)


def test_the_limits_of_a_node():
    drivers = [
        {"name": "b", "allocatable": {"count": 0}},
        {"name": "a", "allocatable": {"count": 3}},
        {"name": "none"},
        {"name": "empty", "allocatable": {}},
        {"name": "huge", "allocatable": {"count": 2**60}},
    ]
    found = storage_values.csi_node(decoded(storage_wire.CsiNode, {"spec": {"drivers": drivers}}))
    known = frozenset({"a", "b", "none", "empty", "huge"})
    assert found == CsiNode("x", (("a", 3), ("b", 0), ("huge", 2**31)), known)
    assert storage_values.csi_node(decoded(storage_wire.CsiNode, {})) == CsiNode("x")


def test_the_volumes_of_a_pod():
    volumes: list[dict[str, Any]] = [
        {"name": "a", "emptyDir": {}},
        {"name": "b", "persistentVolumeClaim": {"claimName": "one"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "one", "readOnly": True}},
        {"name": "d", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "e", "rbd": {"monitors": ["m", "n"], "image": "i", "pool": "p", "readOnly": True}},
        {"name": "f", "iscsi": {"iqn": "q", "lun": 0, "targetPortal": "t"}},
        {"name": "g", "awsElasticBlockStore": {"volumeID": "aws://zone/vol-12345678", "readOnly": True}},
        {"name": "h", "azureDisk": {"diskName": "n", "diskURI": "u"}},
        {"name": "i", "vsphereVolume": {"volumePath": "p"}},
    ]
    found = pod_value(decoded(wire.Pod, {"spec": {"volumes": volumes}}))
    assert (found.volume_claims, found.own_volume_claims) == (("one",), ("x-d",))
    assert found.shape.disks == (
        Disk("rbd", ("m p i", "n p i"), True),
        Disk("iscsi", ("q",)),
        Disk("awsElasticBlockStore", ("aws://zone/vol-12345678",), False, ("ebs.csi.aws.com", "vol-12345678")),
        Disk("azureDisk", (), False, ("disk.csi.azure.com", "u")),
    )
    assert not found.shape.unsupported


def test_pods_with_claims_of_their_own_have_one_shape():
    specs = [{"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]} for name in "ab"]
    first, second = (pod_value(decoded(wire.Pod, {"spec": spec})) for spec in specs)
    assert first.shape is second.shape
