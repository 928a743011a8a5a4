"""Conversion of devices, expressions on them, and the writes of allocations."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.core.objects.devices import (
    AllocatedDevice,
    Allocation,
    ClaimConfig,
    Consumer,
    DeviceClass,
    DeviceRequest,
    DeviceWishes,
    Match,
    ResourceClaim,
)
from gangsched.core.objects.offered_devices import (
    Attribute,
    AttributeType,
    Capacity,
    Device,
    DeviceTaint,
    DeviceTaintRule,
    ResourceSlice,
)
from gangsched.core.objects.pod import DeviceUse
from gangsched.core.objects.prebindings import ClaimConfigured, UseDevices
from gangsched.core.objects.shape import NodeTerm, Requirement, Toleration
from gangsched.kube import wire
from gangsched.kube.cel.device_selectors import CelSelector
from gangsched.kube.dialects.dialect_table import DEFAULT, Dialects
from gangsched.kube.reading import device_values
from gangsched.kube.reading.pod_values import pod_value
from gangsched.kube.reading.storage_values import MARK
from gangsched.kube.wire import device_objects as device_wire
from gangsched.kube.writing import claiming

D = "d.example.com"
ONE = 1_000_000_000
GI = ONE << 30


def decoded(kind: type, found: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode({"metadata": {"name": "x", "uid": "u"}} | found), type=kind)


def slice_of(**spec: Any) -> ResourceSlice:
    return device_values.slice_(
        decoded(device_wire.ResourceSlice, {"spec": {"driver": D, "pool": {"name": "p"}} | spec})
    )


def test_a_slice():
    device = {
        "name": "d0",
        "attributes": {
            "model": {"string": "m"},
            "o.example.com/n": {"int": 3},
            "v": {"version": "1.2.3"},
            "b": {"bool": True},
        },
        "capacity": {"memory": {"value": "1Gi"}},
        "taints": [{"key": "k", "effect": "NoSchedule"}],
    }
    pool = {"name": "p", "generation": 4, "resourceSliceCount": 2}
    found = slice_of(pool=pool, nodeName="n", devices=[device])
    assert found == ResourceSlice(
        "x",
        D,
        "p",
        generation=4,
        parts=2,
        node="n",
        devices=(
            Device(
                "d0",
                (
                    Attribute(f"{D}/b", AttributeType.BOOL, "true"),
                    Attribute(f"{D}/model", AttributeType.STRING, "m"),
                    Attribute(f"{D}/v", AttributeType.VERSION, "1.2.3"),
                    Attribute("o.example.com/n", AttributeType.INT, "3"),
                ),
                ((f"{D}/memory", "1Gi"),),
                (DeviceTaint("k", "", "NoSchedule"),),
                (Capacity("memory", GI),),
            ),
        ),
    )


def test_a_device_with_counters_shares_and_conditions():
    range_ = {"min": "1Gi", "max": "3Gi", "step": "1Gi"}
    device = {
        "name": "d0",
        "capacity": {
            "cores": {"value": "8", "requestPolicy": {"default": "1", "validValues": ["1", "4"]}},
            "memory": {"value": "4Gi", "requestPolicy": {"default": "2Gi", "validRange": range_}},
        },
        "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "500m"}}}],
        "allowMultipleAllocations": True,
        "nodeName": "n",
        "bindingConditions": ["Attached"],
        "bindingFailureConditions": ["Broken"],
        "bindsToNode": True,
    }
    found = slice_of(perDeviceNodeSelection=True, devices=[device])
    assert found.per_device
    assert found.devices == (
        Device(
            "d0",
            capacity=((f"{D}/cores", "8"), (f"{D}/memory", "4Gi")),
            shares=(
                Capacity("cores", 8 * ONE, default=ONE, values=(ONE, 4 * ONE)),
                Capacity("memory", 4 * GI, default=2 * GI, least=GI, most=3 * GI, step=GI),
            ),
            counters=((("s", "c"), ONE // 2),),
            multiple=True,
            node="n",
            binding=("Attached",),
            failing=("Broken",),
            binds_to_node=True,
        ),
    )
    sets = [{"name": "s", "counters": {"c": {"value": "2"}, "b": {"value": "1"}}}]
    assert slice_of(nodeName="n", sharedCounters=sets).counters == ((("s", "b"), ONE), (("s", "c"), 2 * ONE))


@pytest.mark.parametrize(
    ("spec", "beyond"),
    [
        ({"allNodes": True}, False),
        ({"nodeSelector": {"nodeSelectorTerms": [{}]}}, False),
        ({"perDeviceNodeSelection": True}, False),
        ({"nodeName": "n", "sharedCounters": [{"name": "s", "counters": {"c": {"value": "1"}}}]}, False),
        ({"aNewWay": True}, True),
    ],
)
def test_a_slice_whose_nodes_are_not_known_is_used_nowhere(spec, beyond):
    assert slice_of(**spec).unsupported is beyond


def test_a_taint_rule():
    spec = {"deviceSelector": {"driver": D, "pool": "p"}, "taint": {"key": "k", "value": "v", "effect": "NoExecute"}}
    found = device_values.taint_rule(decoded(device_wire.DeviceTaintRule, {"spec": spec}))
    assert found == DeviceTaintRule("x", DeviceTaint("k", "v", "NoExecute"), D, "p")


def claim_of(**found: Any) -> ResourceClaim:
    return device_values.claim(decoded(device_wire.ResourceClaim, found))


def test_a_claim():
    exactly = {
        "deviceClassName": "c",
        "allocationMode": "All",
        "adminAccess": True,
        "selectors": [{"cel": {"expression": "true"}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
    }
    requests = [
        {"name": "a", "exactly": exactly},
        {"name": "b", "firstAvailable": [{"name": "x", "deviceClassName": "c", "count": 2}]},
    ]
    config = [{"requests": ["a"], "opaque": {"driver": D, "parameters": {"z": 1}}}]
    spec = {"requests": requests, "constraints": [{"matchAttribute": f"{D}/numa"}], "config": config}
    results = [{"request": "a", "driver": D, "pool": "p", "device": "d", "adminAccess": True}]
    found = claim_of(
        metadata={"name": "x", "uid": "u", "annotations": {MARK: "p"}},
        spec={"devices": spec},
        status={"allocation": {"devices": {"results": results}}, "reservedFor": [{"uid": "p"}]},
    )
    assert found == ResourceClaim(
        "default",
        "x",
        "u",
        DeviceWishes(
            (
                (
                    DeviceRequest(
                        "a", "c", (CelSelector("true"),), all=True, admin=True, tolerations=(Toleration("k", "Exists"),)
                    ),
                ),
                (DeviceRequest("b/x", "c", count=2),),
            ),
            (Match(f"{D}/numa"),),
            (ClaimConfig(("a",), '{"opaque":{"driver":"d.example.com","parameters":{"z":1}}}'),),
        ),
        Allocation((AllocatedDevice("a", (D, "p", "d"), admin=True),)),
        ("p",),
        ours=True,
    )


def test_a_claim_for_shares_and_what_it_was_allocated():
    exactly = {"deviceClassName": "c", "capacity": {"requests": {"memory": "1Gi"}}}
    spec = {"requests": [{"name": "a", "exactly": exactly}], "constraints": [{"distinctAttribute": f"{D}/numa"}]}
    result: dict[str, Any] = {"request": "a", "driver": D, "pool": "p", "device": "d"}
    result |= {"shareID": "s", "consumedCapacity": {"memory": "1Gi"}, "bindingConditions": ["Attached"]}
    conditions = [{"type": "Attached", "status": "True"}, {"type": "Broken", "status": "False"}]
    status = {
        "allocation": {"devices": {"results": [result]}},
        "devices": [{"driver": D, "pool": "p", "device": "d", "conditions": conditions}],
    }
    found = claim_of(spec={"devices": spec}, status=status)
    assert found.wishes == DeviceWishes(
        ((DeviceRequest("a", "c", capacity=(("memory", GI),)),),), (Match(f"{D}/numa", distinct=True),)
    )
    consumed = (("memory", GI),)
    has = AllocatedDevice("a", (D, "p", "d"), shared=True, share="s", consumed=consumed, binding=("Attached",))
    assert found.allocation == Allocation((has,))
    assert found.conditions == (((D, "p", "d"), ("Attached",)),)
    assert found.prepared
    assert not claim_of(status=status | {"devices": []}).prepared


@pytest.mark.parametrize(
    ("spec", "beyond"),
    [
        ({"requests": [{"name": "a", "exactly": {"derivedAttributes": [{}]}}]}, "derived attributes"),
        ({"requests": [{"name": "a"}]}, "an unknown kind of request (a)"),
        ({"requests": [{"name": "a", "exactly": {"allocationMode": "Some"}}]}, "the allocation mode Some"),
        ({"constraints": [{"anotherAttribute": "a"}]}, "other than matchAttribute"),
    ],
)
def test_what_cannot_be_honoured_of_a_claim_is_named(spec, beyond):
    assert beyond in claim_of(spec={"devices": spec}).wishes.unsupported


@pytest.mark.parametrize(
    ("owner", "group"),
    [
        ({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "controller": True}, "pair"),
        ({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "controller": True}, "pair"),
        ({"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}, ""),
        ({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "controller": True}, ""),
        ({"apiVersion": "v1", "kind": "Pod", "controller": True}, ""),
    ],
)
def test_a_claim_says_for_which_native_group_it_was_made(owner, group):
    meta = {"name": "c", "namespace": "default", "ownerReferences": [owner | {"name": "pair", "uid": "u"}]}
    assert device_values.claim(decoded(device_wire.ResourceClaim, {"metadata": meta, "spec": {}})).group == group


def test_a_claim_says_which_of_its_consumers_are_native_groups():
    """One of the two is a PodGroup of another system, which no scheduler reserves claims for."""
    reserved = [
        {"resource": "pods", "name": "a", "uid": "1"},
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "2"},
        {"apiGroup": "scheduling.x-k8s.io", "resource": "podgroups", "name": "h", "uid": "3"},
    ]
    found = claim_of(status={"reservedFor": reserved})
    assert found.reserved == ("1", "2", "3")
    assert found.sharing == (Consumer("g", "2", group=True),)


@pytest.mark.parametrize(("dialects", "group"), [(DEFAULT, "g"), (Dialects([]), "")], ids=["read", "not read"])
def test_the_claims_of_a_pod_name_its_native_group_if_such_groups_are_read(dialects, group):
    uses = [{"name": "shared", "resourceClaimName": "c"}, {"name": "made", "resourceClaimTemplateName": "t"}]
    spec = {"schedulingGroup": {"podGroupName": "g"}, "resourceClaims": uses}
    found = pod_value(decoded(wire.Pod, {"spec": spec}), dialects)
    assert found.device_claims == (DeviceUse("shared", "c", "", group), DeviceUse("made", "", "t", group))


def test_the_claims_of_a_pod():
    spec = {
        "resourceClaims": [
            {"name": "own", "resourceClaimName": "c"},
            {"name": "made", "resourceClaimTemplateName": "t"},
            {"name": "to-be-made", "resourceClaimTemplateName": "t"},
            {"name": "needless", "resourceClaimTemplateName": "t"},
        ]
    }
    status = {"resourceClaimStatuses": [{"name": "made", "resourceClaimName": "m"}, {"name": "needless"}]}
    found = pod_value(decoded(wire.Pod, {"spec": spec, "status": status}))
    assert found.device_claims == (
        DeviceUse("own", "c"),
        DeviceUse("made", "m", "t"),
        DeviceUse("to-be-made", template="t"),
    )
    assert not found.shape.unsupported


WHERE = (NodeTerm(fields=(Requirement("metadata.name", "In", ("n",)),)),)
USE = UseDevices(
    "default",
    "x",
    "u",
    Consumer("pod", "pod-uid"),
    Allocation((AllocatedDevice("a", (D, "p", "d")),), WHERE),
    (ClaimConfigured("FromClass", ("a",), '{"opaque":{"driver":"d"}}'),),
)
RESERVED = {"resource": "pods", "name": "pod", "uid": "pod-uid"}
OTHER = {"resource": "pods", "name": "other", "uid": "other"}


def shown(*, status: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": "c", "tolerations": [{"key": "k", "operator": "Exists"}]}
    return {
        "metadata": {"name": "x", "uid": "u"} | meta,
        "spec": {"devices": {"requests": [{"name": "a", "exactly": exactly}]}},
        "status": status or {},
    }


MARKED: dict[str, Any] = {"annotations": {MARK: "pod-uid"}, "finalizers": [claiming.FINALIZER]}


def written() -> dict[str, Any]:
    return {
        "devices": {
            "results": [
                {
                    "request": "a",
                    "driver": D,
                    "pool": "p",
                    "device": "d",
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                }
            ],
            "config": [{"source": "FromClass", "requests": ["a"], "opaque": {"driver": "d"}}],
        },
        "nodeSelector": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]
        },
    }


def test_a_claim_without_devices_gets_them_and_a_reservation():
    assert claiming.using(shown(**MARKED), USE) == {"status": {"allocation": written(), "reservedFor": [RESERVED]}}


def test_a_claim_that_a_native_group_shares_is_reserved_for_the_group():
    """As by `BindTo` in k8s.io/dynamic-resource-allocation/resourceclaim at v0.37.2."""
    use = msgspec.structs.replace(USE, consumer=Consumer("g", "group-uid", group=True))
    entry = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "group-uid"}
    assert claiming.using(shown(**MARKED), use) == {"status": {"allocation": written(), "reservedFor": [entry]}}
    status = {"allocation": written(), "reservedFor": [OTHER, entry]}
    assert claiming.using(shown(status=status, **MARKED), use) == {}
    assert claiming.leaving(shown(status=status, **MARKED), use) == {"status": {"reservedFor": [OTHER]}}
    assert use.awaited == "the ResourceClaim x is being allocated and reserved for PodGroup g"
    assert USE.awaited == "the ResourceClaim x is being allocated and reserved for pod pod"


def test_shares_and_conditions_are_written_with_the_devices():
    device = AllocatedDevice(
        "a",
        (D, "p", "d"),
        shared=True,
        share="s",
        consumed=(("memory", 30 * GI),),
        binding=("Attached",),
        failing=("Broken",),
    )
    use = msgspec.structs.replace(USE, allocation=Allocation((device,)))
    patch = claiming.using(shown(**MARKED), use)
    assert patch is not None
    [result] = patch["status"]["allocation"]["devices"]["results"]
    assert {
        key: result[key] for key in result if key not in ("request", "driver", "pool", "device", "tolerations")
    } == {
        "shareID": "s",
        "consumedCapacity": {"memory": "30Gi"},
        "bindingConditions": ["Attached"],
        "bindingFailureConditions": ["Broken"],
    }
    shares = {"allocation": patch["status"]["allocation"], "reservedFor": [OTHER]}
    assert claiming.using(shown(status=shares, **MARKED), use) == {"status": {"reservedFor": [OTHER, RESERVED]}}
    shares["allocation"]["devices"]["results"][0]["shareID"] = "another"
    assert claiming.using(shown(status=shares, **MARKED), use) is None


def test_a_claim_with_the_same_devices_is_reserved_too_and_one_with_others_is_left_alone():
    status: dict[str, Any] = {"allocation": written(), "reservedFor": [OTHER]}
    assert claiming.using(shown(status=status, **MARKED), USE) == {"status": {"reservedFor": [OTHER, RESERVED]}}
    assert claiming.using(shown(status={"allocation": written(), "reservedFor": [RESERVED]}, **MARKED), USE) == {}
    status["allocation"]["devices"]["results"][0]["device"] = "another"
    assert claiming.using(shown(status=status, **MARKED), USE) is None
    assert claiming.using(shown(uid="another", **MARKED), USE) is None


@pytest.mark.parametrize("lost", MARKED)
def test_a_claim_that_has_lost_its_finalizer_or_mark_gets_no_devices(lost):
    """It was released in between, for another member: without finalizer and mark its devices would be left behind."""
    assert claiming.using(shown(**{key: value for key, value in MARKED.items() if key != lost}), USE) is None


def test_a_claim_gets_its_finalizer_and_our_mark_first():
    marked: dict[str, Any] = {"annotations": {MARK: "pod-uid"}, "finalizers": ["f", claiming.FINALIZER]}
    assert claiming.marking(shown(finalizers=["f"]), USE) == {"metadata": marked}
    assert claiming.marking(shown(**marked), USE) == {}
    assert claiming.marking(shown(uid="another"), USE) is None
    assert claiming.marking(shown(deletionTimestamp="now"), USE) is None


def test_the_last_reservation_takes_the_devices_with_it():
    ours = {"annotations": {MARK: "pod-uid"}}
    status = {"allocation": written(), "reservedFor": [OTHER, RESERVED]}
    assert claiming.leaving(shown(status=status, **ours), USE) == {"status": {"reservedFor": [OTHER]}}
    assert claiming.leaving(shown(status=status), USE) is None
    status["reservedFor"] = [RESERVED]
    gone = {"status": {"reservedFor": None, "allocation": None}}
    assert claiming.leaving(shown(status=status, **ours), USE) == gone
    assert claiming.leaving(shown(**ours), USE) == {}


def test_finalizer_and_mark_are_taken_off_a_claim_of_ours_without_devices():
    found = shown(finalizers=["f", claiming.FINALIZER], annotations=MARKED["annotations"])
    assert claiming.unmarking(found, USE) == {"metadata": {"finalizers": ["f"], "annotations": {MARK: None}}}
    assert claiming.unmarking(shown(status={"allocation": written()}, **MARKED), USE) == {}
    assert claiming.unmarking(shown(), USE) is None
    assert claiming.unmarking(shown(uid="another", **MARKED), USE) is None


def test_a_class_that_provides_an_extended_resource():
    meta = {"name": "gpu", "creationTimestamp": "2026-01-01T00:00:10Z"}
    spec = {"extendedResourceName": "example.com/gpu"}
    found = device_values.device_class(decoded(device_wire.DeviceClass, {"metadata": meta, "spec": spec}))
    assert found == DeviceClass("gpu", resource="example.com/gpu", made_at=1767225610.0)
