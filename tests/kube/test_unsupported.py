from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.kube import wire
from gangsched.kube.terms.unsupported import unsupported_fields


def named(spec: dict[str, Any]) -> tuple[str, ...]:
    return unsupported_fields(msgspec.json.decode(msgspec.json.encode(spec), type=wire.PodSpec))


def affinity(kind: str) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        affinity("podAffinity"),
        affinity("podAntiAffinity"),
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
        {"volumes": [{"emptyDir": {}}, {"configMap": {"name": "a"}}, {"projected": {}}, {"hostPath": {}}, {"nfs": {}}]},
        {"volumes": [{"azureFile": {}}, {"vsphereVolume": {}}, {"csi": {}}]},
        {"volumes": [{"persistentVolumeClaim": {"claimName": "a"}}, {"rbd": {"image": "a"}}]},
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}]},
    ],
)
def test_what_needs_no_honouring_is_not_named(spec: dict[str, Any]) -> None:
    assert named(spec) == ()


@pytest.mark.parametrize(("number", "named_as"), [(8, 0), (9, 1)])
def test_a_pod_with_more_terms_than_can_be_compared_with_all_pods_is_refused(number: int, named_as: int) -> None:
    term = {"topologyKey": "zone"}
    spread = {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}] * (number - 2)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    assert len(named(spread | {"affinity": {"podAffinity": required, "podAntiAffinity": required}})) == named_as
