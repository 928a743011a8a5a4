"""The judge agrees with a running kube-scheduler on a real API server about each pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from testbed.control_plane import ControlPlane
from tests.integration.judged import Bench, Json, Surroundings, World
from tests.integration.oracle import Oracle
from tests.integration.oracle_worlds import HOST, HOST_USERS, NAMESPACES, PRIORITIES, RUNTIME_CLASSES, Dice, node, pod
from tests.judge import Judge, RefusedError


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    gates = [f"--feature-gates={HOST_USERS}=true"]
    with ControlPlane(
        controllers=False, kwok=False, not_ready_taint=False, extra_apiserver_args=gates
    ) as control_plane:
        for name, labels in NAMESPACES.items():
            control_plane.api.post("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        for runtime_class in RUNTIME_CLASSES:
            control_plane.api.post("/apis/node.k8s.io/v1/runtimeclasses", runtime_class)
        for name, value in PRIORITIES.items():
            made = {"metadata": {"name": name}, "value": value}
            control_plane.api.post("/apis/scheduling.k8s.io/v1/priorityclasses", made)
        yield Oracle(control_plane)


def test_the_judge_and_the_running_kube_scheduler_agree(oracle: Oracle, judge: Judge) -> None:
    bench = Bench(judge, Surroundings(NAMESPACES, RUNTIME_CLASSES, PRIORITIES))
    dice = Dice(101)
    world, probes = dice.world(nodes=12, pods=24), [dice.probe() for _ in range(60)]
    with bench.world(world), oracle.world(world):
        judged = bench.ask(probes)
        assert [each.kube_scheduler for each in judged] == oracle.ask(probes)
    assert len({each.kube_scheduler for each in judged}) > 10


def test_volumes_and_devices_are_judged_too(judge: Judge) -> None:
    volume = _object("v1", "PersistentVolume", "v1") | {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/v"},
            "claimRef": {"namespace": "red", "name": "data", "uid": "data"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": ["n1"]}]}]
                }
            },
        }
    }
    bound = {"uid": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = _object("v1", "PersistentVolumeClaim", "data", namespace="red", **bound) | {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": "v1",
            "storageClassName": "",
        },
        "status": {"phase": "Bound"},
    }
    pool = {"name": "n2", "generation": 1, "resourceSliceCount": 1}
    asked = {"name": "device", "exactly": {"deviceClassName": "gpu"}}
    devices = [
        _object("resource.k8s.io/v1", "DeviceClass", "gpu") | {"spec": {}},
        _object("resource.k8s.io/v1", "ResourceSlice", "n2")
        | {"spec": {"driver": "gpu.example.com", "pool": pool, "nodeName": "n2", "devices": [{"name": "d0"}]}},
        _object("resource.k8s.io/v1", "ResourceClaim", "device", namespace="red", uid="device")
        | {"spec": {"devices": {"requests": [asked]}}},
    ]
    bench = Bench(judge, Surroundings({"red": {}}))
    with bench.world(World([node("n1"), node("n2"), node("n3")], others=[volume, claim, *devices])):
        [on_volume, on_device] = bench.said(
            [
                pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]),
                pod(resourceClaims=[{"name": "d", "resourceClaimName": "device"}]),
            ]
        ).verdicts
    assert on_volume.feasible == {"n1"}
    assert on_device.feasible == {"n2"}
    assert {each.plugin for each in on_volume.refused.values()} == {"VolumeBinding"}
    assert {each.plugin for each in on_device.refused.values()} == {"DynamicResources"}


def _object(version: str, kind: str, name: str, **meta: Any) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name} | meta}


def test_what_the_api_server_would_not_take_is_not_judged(judge: Judge) -> None:
    named = node("n1") | {"apiVersion": "v1", "kind": "Node"}
    unnamed = pod() | {"apiVersion": "v1", "kind": "Pod"}
    with pytest.raises(RefusedError, match=r"metadata\.name: Required"):
        judge.ask([named], [unnamed])


def test_a_refusal_names_the_plugin(judge: Judge) -> None:
    bench = Bench(judge, Surroundings({"red": {}}))
    probe = bench.named([pod()])
    [verdict] = judge.ask([node("n1", cordoned=True) | {"apiVersion": "v1", "kind": "Node"}], probe).verdicts
    assert verdict.refused["n1"].plugin == "NodeUnschedulable"
    assert verdict.refused["n1"].reasons == ["node(s) were unschedulable"]
