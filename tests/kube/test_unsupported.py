from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.kube import wire
from gangsched.kube.unsupported import unsupported_fields


def named(spec: dict[str, Any]) -> tuple[str, ...]:
    return unsupported_fields(msgspec.json.decode(msgspec.json.encode(spec), type=wire.PodSpec))


def affinity(kind: str) -> dict[str, Any]:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}}


RESTART_ALL = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}

REFUSED = [
    ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
    ({"containers": [{}, RESTART_ALL]}, "spec.containers[].restartPolicyRules (RestartAllContainers)"),
    ({"initContainers": [RESTART_ALL]}, "spec.initContainers[].restartPolicyRules (RestartAllContainers)"),
    ({"hostNetwork": True, "hostUsers": False}, "spec.hostUsers (false, together with hostNetwork)"),
]


@pytest.mark.parametrize(("spec", "name"), REFUSED)
def test_what_cannot_be_honoured_is_named(spec: dict[str, Any], name: str) -> None:
    assert named(spec) == (name,)


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
        {"resourceClaims": []},
        {"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]},
        {"hostNetwork": True},
        {"hostNetwork": True, "hostUsers": True},
        {"hostUsers": False},
    ],
)
def test_what_needs_no_honouring_is_not_named(spec: dict[str, Any]) -> None:
    assert named(spec) == ()


def test_everything_at_once_is_named_in_one_order_without_repetition() -> None:
    spec = {"resourceClaims": [{}, {}], "hostNetwork": True, "hostUsers": False}
    assert named(spec) == ("spec.resourceClaims", "spec.hostUsers (false, together with hostNetwork)")
