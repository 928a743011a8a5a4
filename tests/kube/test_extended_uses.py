"""Pods' extended resources as requests of the ResourceClaim that may be made for them, and that claim."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.core.objects.devices import Allocation, Consumer, ExtendedUse, Making
from gangsched.core.objects.prebindings import UseDevices
from gangsched.kube import wire
from gangsched.kube.reading import device_values
from gangsched.kube.reading.pod_values import pod_value
from gangsched.kube.reading.storage_values import MARK
from gangsched.kube.wire import device_objects as device_wire
from gangsched.kube.writing import claiming

GPU = "example.com/gpu"


def container(name: str, *, policy: Any = None, **requests: Any) -> dict[str, Any]:
    asked = {GPU if key == "gpu" else key: str(value) for key, value in requests.items()}
    return {"name": name, "resources": {"requests": asked}, "restartPolicy": policy}


def uses(*containers: dict[str, Any], init: Any = ()) -> tuple[ExtendedUse, ...]:
    spec = {"containers": containers, "initContainers": init}
    pod = msgspec.json.decode(msgspec.json.encode({"metadata": {"name": "p"}, "spec": spec}), type=wire.Pod)
    return pod_value(pod).extended


@pytest.mark.parametrize(
    ("init", "beside", "requests", "mappings"),
    [
        ([], [container("a", gpu=2)], [("container-0-request-0", 2)], [("a", "container-0-request-0")]),
        (
            [],
            [container("a", gpu=1, cpu=1), container("b", gpu=2)],
            [("container-0-request-1", 1), ("container-1-request-0", 2)],
            [("a", "container-0-request-1"), ("b", "container-1-request-0")],
        ),
        (
            [container("i", gpu=1)],
            [container("a", gpu=2)],
            [("container-1-request-0", 2)],
            [("a", "container-1-request-0"), ("i", "container-1-request-0")],
        ),
        (
            [container("i", gpu=3)],
            [container("a", gpu=2)],
            [("container-0-request-0", 1), ("container-1-request-0", 2)],
            [("a", "container-1-request-0"), ("i", "container-1-request-0"), ("i", "container-0-request-0")],
        ),
        (
            [container("i", gpu=2), container("j", gpu=4)],
            [container("a", gpu=1)],
            [("container-1-request-0", 3), ("container-2-request-0", 1)],
            [
                ("a", "container-2-request-0"),
                ("i", "container-2-request-0"),
                ("i", "container-1-request-0"),
                ("j", "container-2-request-0"),
                ("j", "container-1-request-0"),
            ],
        ),
        (
            [container("s", policy="Always", gpu=1), container("i", gpu=1)],
            [container("a", cpu=1)],
            [("container-1-request-0", 1), ("container-0-request-0", 1)],
            [("s", "container-0-request-0"), ("i", "container-1-request-0")],
        ),
    ],
)
def test_what_a_claim_asks_for(init, beside, requests, mappings):
    assert uses(*beside, init=init) == (ExtendedUse(GPU, tuple(requests), tuple(mappings)),)


def test_what_is_no_extended_resource_asks_for_nothing():
    odd = {"cpu": 1, "hugepages-2Mi": 1, "kubernetes.io/x": 1, "example.com/half": "500m", "example.com/bad": "x"}
    assert uses(container("a", **odd)) == ()
    assert [each.resource for each in uses(container("a", **{"deviceclass.resource.kubernetes.io/c": 1, GPU: 1}))] == [
        "deviceclass.resource.kubernetes.io/c",
        GPU,
    ]


MAKING = Making((("r", "gpu", 2),), (("a", GPU, "r"),))
USE = UseDevices("default", "c", "", Consumer("p", "pod-uid"), Allocation(), making=MAKING)


def test_the_claim_that_is_made_is_ours_and_the_pods():
    made = claiming.claim(USE, MAKING)
    made["metadata"]["uid"] = "u"
    found = device_values.claim(msgspec.json.decode(msgspec.json.encode(made), type=device_wire.ResourceClaim))
    assert (found.owner, found.ours, found.extended, found.allocation) == ("pod-uid", True, True, None)
    [[request]] = found.wishes.requests
    assert (request.name, request.device_class, request.count, request.all) == ("r", "gpu", 2, False)
    assert made["metadata"]["annotations"][MARK] == "pod-uid"
    assert claiming.created_uid(made, USE) == "u"


@pytest.mark.parametrize("change", [{"ownerReferences": []}, {"annotations": {}}, {"deletionTimestamp": "now"}])
def test_a_claim_of_another_or_one_that_is_deleted_is_not_used(change):
    made = claiming.claim(USE, MAKING)
    made["metadata"] |= {"uid": "u"} | change
    assert claiming.created_uid(made, USE) == ""


def test_the_pod_is_told_of_its_claim_and_that_it_has_none():
    told = claiming.naming(USE, MAKING)
    mapping = {"containerName": "a", "resourceName": GPU, "requestName": "r"}
    status = {"resourceClaimName": "c", "requestMappings": [mapping]}
    assert told == {"metadata": {"uid": "pod-uid"}, "status": {"extendedResourceClaimStatus": status}}
    assert claiming.unnaming(USE)["status"] == {"extendedResourceClaimStatus": None}
