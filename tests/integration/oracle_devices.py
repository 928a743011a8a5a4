"""Concise builders of devices, claims and pods that use them, for the oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.integration.judged import Json
from tests.integration.oracle_worlds import pod

DRIVER = "gpu.example.com"
OTHER_DRIVER = "nic.example.com"
API = "resource.k8s.io/v1"


def of(kind: str, name: str, spec: Json, namespace: str = "", **fields: Any) -> Json:
    """An object of the API group resource.k8s.io; its UID is its name."""
    meta = {"name": name, "uid": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": API, "kind": kind, "metadata": meta, "spec": spec} | fields


def device_class(name: str, *expressions: str, **spec: Any) -> Json:
    """A class of the devices that match all these expressions."""
    return of("DeviceClass", name, spec | ({"selectors": list(map(_selector, expressions))} if expressions else {}))


def slice_of(name: str, *devices: Json, driver: str = DRIVER, pool: Any = None, **where: Any) -> Json:
    """A slice of a pool of the same name, complete by itself unless `pool` says otherwise, on the node of that name."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1} | (pool or {})
    return of("ResourceSlice", name, {"driver": driver, "pool": pool, "devices": [*devices]} | (where or on_node(name)))


def on_node(name: str) -> Json:
    """The location of a slice's devices: that node."""
    return {"nodeName": name}


def exactly(*expressions: str, device_class: str = "any", count: int | None = 1, **asked: Any) -> Json:
    """A request for `count` devices that match all expressions; for every one if the count is None."""
    mode = {"allocationMode": "All"} if count is None else {"allocationMode": "ExactCount", "count": count}
    selectors = {"selectors": list(map(_selector, expressions))} if expressions else {}
    return {"deviceClassName": device_class} | mode | selectors | asked


def claim(
    name: str, *requests: Json | Sequence[Json], match: Sequence[str] = (), distinct: Sequence[str] = (), **status: Any
) -> Json:
    """A claim of namespace red: requests r0, r1 and so on; a list of them holds alternatives a0, a1 and so on."""
    asked: list[Json] = []
    for at, each in enumerate(requests):
        if isinstance(each, dict):
            asked.append({"name": f"r{at}", "exactly": each})
        else:
            alternatives = [{"name": f"a{number}"} | alternative for number, alternative in enumerate(each)]
            asked.append({"name": f"r{at}", "firstAvailable": alternatives})
    spec: Json = {"requests": asked}
    if match or distinct:
        spec["constraints"] = [{"matchAttribute": f"{DRIVER}/{attribute}"} for attribute in match]
        spec["constraints"] += [{"distinctAttribute": f"{DRIVER}/{attribute}"} for attribute in distinct]
    return of("ResourceClaim", name, {"devices": spec}, "red", **({"status": status} if status else {}))


def having(name: str, *devices: tuple[str, str, str], users: int = 1, where: Json | None = None, **result: Any) -> Json:
    """A claim with these allocated devices (driver, pool and name), reserved for `users` other pods.

    It can be used on the node of its first device's pool, or where the node selector `where` matches.
    """
    results = [
        {"request": "r0", "driver": driver, "pool": pool, "device": device} | result for driver, pool, device in devices
    ]
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [devices[0][1]]}]}
    allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [where or here]}}
    reserved = [{"resource": "pods", "name": f"{name}-{at}", "uid": f"{name}-{at}"} for at in range(users)]
    return claim(name, exactly(count=len(devices)), allocation=allocation, reservedFor=reserved)


def using(*claims: str, made: bool = False, **spec: Any) -> Json:
    """A pod that uses these claims of namespace red; `made`: from a template, as each claim's owner shows."""
    if not made:
        asked = [{"name": f"c{at}", "resourceClaimName": name} for at, name in enumerate(claims)]
        return pod(resourceClaims=asked, **spec)
    asked = [{"name": f"c{at}", "resourceClaimTemplateName": "t"} for at in range(len(claims))]
    status = [{"name": f"c{at}", "resourceClaimName": name} for at, name in enumerate(claims)]
    return pod(resourceClaims=asked, **spec) | {"status": {"resourceClaimStatuses": status}}


def _selector(expression: str) -> Json:
    return {"cel": {"expression": expression}}
