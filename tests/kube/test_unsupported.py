from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gangsched.kube import wire
from gangsched.kube.unsupported import unsupported_fields


def named(spec: dict[str, Any]) -> tuple[str, ...]:
    return unsupported_fields(msgspec.json.decode(msgspec.json.encode(spec), type=wire.PodSpec))


def affinity(kind: str, how: str) -> dict[str, Any]:
    return {"affinity": {kind: {f"{how}DuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone"}]}}}


REFUSED = [
    (affinity("podAffinity", "required"), "spec.affinity.podAffinity (required)"),
    (affinity("podAntiAffinity", "required"), "spec.affinity.podAntiAffinity (required)"),
    (
        {
            "topologySpreadConstraints": [
                {"whenUnsatisfiable": "ScheduleAnyway"},
                {"whenUnsatisfiable": "DoNotSchedule"},
            ]
        },
        "spec.topologySpreadConstraints (DoNotSchedule)",
    ),
    ({"topologySpreadConstraints": [{}]}, "spec.topologySpreadConstraints (DoNotSchedule)"),
    ({"volumes": [{"persistentVolumeClaim": {"claimName": "a"}}]}, "spec.volumes[].persistentVolumeClaim"),
    ({"volumes": [{"ephemeral": {"volumeClaimTemplate": {}}}]}, "spec.volumes[].ephemeral"),
    ({"volumes": [{"gcePersistentDisk": {"pdName": "a"}}]}, "spec.volumes[].gcePersistentDisk"),
    ({"volumes": [{"awsElasticBlockStore": {"volumeID": "a"}}]}, "spec.volumes[].awsElasticBlockStore"),
    ({"volumes": [{"azureDisk": {"diskName": "a"}}]}, "spec.volumes[].azureDisk"),
    ({"volumes": [{"cinder": {"volumeID": "a"}}]}, "spec.volumes[].cinder"),
    ({"volumes": [{"portworxVolume": {"volumeID": "a"}}]}, "spec.volumes[].portworxVolume"),
    ({"volumes": [{"iscsi": {"iqn": "a"}}]}, "spec.volumes[].iscsi"),
    ({"volumes": [{"emptyDir": {}}, {"rbd": {"image": "a"}}]}, "spec.volumes[].rbd"),
    ({"resourceClaims": [{"name": "gpu"}]}, "spec.resourceClaims"),
]


@pytest.mark.parametrize(("spec", "name"), REFUSED)
def test_what_cannot_be_honoured_is_named(spec: dict[str, Any], name: str) -> None:
    assert named(spec) == (name,)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        affinity("podAffinity", "preferred"),
        affinity("podAntiAffinity", "preferred"),
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}},
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
        {"volumes": [{"emptyDir": {}}, {"configMap": {"name": "a"}}, {"projected": {}}, {"hostPath": {}}, {"nfs": {}}]},
        {"volumes": [{"azureFile": {}}, {"vsphereVolume": {}}, {"csi": {}}]},
        {"resourceClaims": []},
    ],
)
def test_what_needs_no_honouring_is_not_named(spec: dict[str, Any]) -> None:
    assert named(spec) == ()


def test_everything_at_once_is_named_in_one_order_without_repetition() -> None:
    claims: list[dict[str, Any]] = [{"rbd": {}}, {"persistentVolumeClaim": {}}, {"persistentVolumeClaim": {}}]
    spec = affinity("podAffinity", "required") | {"volumes": claims, "resourceClaims": [{}]}
    assert named(spec) == (
        "spec.affinity.podAffinity (required)",
        "spec.volumes[].persistentVolumeClaim",
        "spec.volumes[].rbd",
        "spec.resourceClaims",
    )
