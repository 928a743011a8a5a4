"""The devices of a scenario: one DeviceClass, a pool for each node, and a ResourceClaim for each pod."""

from __future__ import annotations

from gangsched.core.objects.devices import AllocatedDevice, Allocation, Consumer
from gangsched.core.objects.prebindings import UseDevices
from testbed.workloads import Json

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
_DRIVER = "gpu.example.com"
_CLASS = "gpu"
_PER_NODE = 8


def device_class() -> Json:
    """The DeviceClass of all devices."""
    return {
        "metadata": {"name": _CLASS},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == '{_DRIVER}'"}}]},
    }


def pool(node: str) -> Json:
    """The ResourceSlice with all devices of a node."""
    devices = [{"name": f"gpu-{at}", "attributes": {"model": {"string": "a100"}}} for at in range(_PER_NODE)]
    return {
        "metadata": {"name": node},
        "spec": {
            "driver": _DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def claim(pod: str) -> Json:
    """A claim for one device, as kube-controller-manager creates it from a template before a scheduler acts."""
    asked = {
        "deviceClassName": _CLASS,
        "selectors": [{"cel": {"expression": f"device.attributes['{_DRIVER}'].model == 'a100'"}}],
    }
    return {"metadata": {"name": pod}, "spec": {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}}}


def use(pod: str) -> Json:
    """The fields of the pod's spec that refer to its claim."""
    return {"resourceClaims": [{"name": "gpu", "resourceClaimName": pod}]}


def given(found: Json) -> list[tuple[str, str]]:
    """The pool and name of each device allocated to a claim that was read from the API server."""
    allocation = found.get("status", {}).get("allocation") or {"devices": {"results": []}}
    return [(each["pool"], each["device"]) for each in allocation["devices"]["results"]]


def taken(pod: str, pod_uid: str, claim_uid: str, *, number: int, nodes: int) -> UseDevices:
    """The allocation that a client without planning writes for pod `number`: pods take the devices in order."""
    device = (_DRIVER, f"n{number % nodes}", f"gpu-{number // nodes}")
    return UseDevices("default", pod, claim_uid, Consumer(pod, pod_uid), Allocation((AllocatedDevice("gpu", device),)))
