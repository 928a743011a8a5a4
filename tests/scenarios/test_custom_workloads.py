"""Pods of one's own operator are a gang once the setting `workloads.custom` describes its kind."""

from __future__ import annotations

import json
from typing import Any

from gangsched.config.settings import validated
from gangsched.core.objects.pod import Owner, Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.workloads.workload_kind import Mark
from gangsched.kube.workloads.workload_table import chosen
from tests.builders import node, pod
from tests.harness import Harness

FARM: dict[str, Any] = {
    "name": "farm",
    "apiVersion": "example.com/v1",
    "kind": "Farm",
    "plural": "farms",
    "roles": {"path": "spec.pools", "label": "example.com/pool"},
    "label": "example.com/farm",
}
KIND = chosen(validated({"workloads": {"custom": [FARM]}}, "test")).kinds["farm"]


def farm(*pools: tuple[str, int], uid: str = "u") -> ForeignGroup:
    meta = {"name": "bert", "namespace": "default", "uid": uid, "annotations": {"gangsched.io/gang": "true"}}
    spec = {"pools": [{"name": name, "replicas": replicas} for name, replicas in pools]}
    return KIND.read(json.dumps({"metadata": meta, "spec": spec}).encode())[1]


def of_farm(pool: str, number: int, **fields: Any) -> Pod:
    """A pod of the ReplicaSet that the operator has made for the pool."""
    owner = Owner("ReplicaSet", f"bert-{pool}", f"uid-{pool}", "apps")
    workload = KIND.workload(Mark("bert", role=pool))
    return pod(f"default/bert-{pool}-{number}", group="", owner=owner, workload=workload, **fields)


def harness() -> Harness:
    found = Harness()
    found.label_namespace("default", {})
    return found


def test_its_pods_are_bound_whole_with_each_role_or_not_at_all():
    found = harness()
    found.add(node(cpu="4"), farm(("a", 2), ("b", 3)))
    found.wait(5, *(of_farm("a", at) for at in range(2)), *(of_farm("b", at) for at in range(3)))
    before, reason = found.bound(), found.pod("default/bert-a-0").condition_reason
    found.wait(5, node("n2", cpu="1"))
    assert (before, reason, len(found.bound())) == ([], "Unschedulable", 5)


def test_a_path_that_leads_nowhere_binds_nothing_and_is_told():
    found = harness()
    meta = {"name": "bert", "namespace": "default", "uid": "u", "annotations": {"gangsched.io/gang": "true"}}
    found.add(node(cpu="9"), KIND.read(json.dumps({"metadata": meta, "spec": {}}).encode())[1])
    found.wait(5, *(of_farm("a", at) for at in range(2)))
    assert found.bound() == []
    assert found.pod("default/bert-a-0").condition_reason == "InvalidDeclaration"
