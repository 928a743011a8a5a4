"""Kinds that the setting `workloads.custom` describes are recognised and read without code for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gangsched.config.invalid_config import InvalidConfig
from gangsched.config.settings import Settings, validated
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.workloads.workload_table import Workloads, chosen
from tests.kube.test_workloads import pod_of, read, said

Json = dict[str, Any]
FARM: Json = {"name": "farm", "apiVersion": "example.com/v1", "kind": "Farm", "plural": "farms"}
COUNTED: Json = FARM | {"replicas": "spec.worker.replicas"}
POOLS: Json = FARM | {"roles": {"path": "spec.pools", "label": "example.com/pool"}, "label": "example.com/farm"}


def kinds(*custom: Json, **settings: Any) -> Workloads:
    return chosen(validated({"workloads": {"custom": list(custom), **settings}}, "test"))


def of(custom: Json, spec: object, **metadata: object) -> ForeignGroup:
    body = {"metadata": {"name": "bert", "namespace": "ns", "uid": "u", **metadata}, "spec": spec}
    return kinds(custom).kinds["farm"].read(json.dumps(body).encode())[1]


@pytest.mark.parametrize(
    ("custom", "spec", "expected"),
    [
        (COUNTED, {"worker": {"replicas": 5}}, (5, {}, "")),
        (COUNTED, {"worker": {"replicas": 0}}, (1, {}, "has no replicas")),
        (POOLS, {"pools": [{"name": "a", "replicas": 2}, {"name": "b", "replicas": 3}]}, (5, {"a": 2, "b": 3}, "")),
        (POOLS, {"pools": []}, (1, {}, "has no replicas")),
        (
            POOLS | {"roles": POOLS["roles"] | {"path": "spec.a.b", "name": "meta.title", "replicas": "size.wanted"}},
            {"a": {"b": [{"meta": {"title": "x"}, "size": {"wanted": 4}}]}},
            (4, {"x": 4}, ""),
        ),
    ],
)
def test_the_paths_say_the_size_and_the_roles_of_the_gang(custom, spec, expected):
    assert said(of(custom, spec)) == expected


@pytest.mark.parametrize(
    ("custom", "spec", "told"),
    [
        (COUNTED, None, "it has no field spec.worker.replicas"),
        (COUNTED, {"worker": 3}, "it has no field spec.worker.replicas"),
        (COUNTED, {"worker": {"replicas": True}}, "spec.worker.replicas is 'True'"),
        (COUNTED, {"worker": {"replicas": -1}}, "spec.worker.replicas is '-1'"),
        (COUNTED, {"worker": {"replicas": "3"}}, "spec.worker.replicas is '3'"),
        (COUNTED, {"worker": {"replicas": 2**31}}, f"spec.worker.replicas is '{2**31}'"),
        (POOLS, {"pools": {"a": 1}}, "spec.pools is no list"),
        (POOLS, {"pools": [{"replicas": 1}]}, "it has no field spec.pools[0].name"),
        (POOLS, {"pools": [{"name": "a"}]}, "it has no field spec.pools[0].replicas"),
        (POOLS, {"pools": [{"name": "a", "replicas": 1}] * 2}, "spec.pools[1].name is 'a'"),
        (POOLS, {"pools": [{"name": "a" * 64, "replicas": 1}]}, "spec.pools[0].name is"),
        (POOLS, {"pools": ["a"]}, "it has no field spec.pools[0].name"),
        (POOLS, {"pools": [{"name": f"p{at}", "replicas": 1} for at in range(65)]}, "spec.pools has 65 items"),
    ],
)
def test_an_object_that_does_not_say_it_is_told_and_wants_a_whole_gang_all_the_same(custom, spec, told):
    found = of(custom, spec, annotations={"gangsched.io/gang": "true"})
    assert found.spec is None
    assert found.error.startswith(f"Farm bert: {told}")
    assert found.workload is not None
    assert found.workload.gang is True


def test_the_annotations_count_as_for_every_kind():
    found = of(COUNTED, {"worker": {"replicas": 5}}, annotations={"gangsched.io/min-member": "3"})
    assert said(found)[0] == 3


OWNER = {"apiVersion": "example.com/v1", "kind": "Farm", "name": "bert", "uid": "uid-bert"}
"""It is not the pod's controller, as an operator writes it with SetOwnerReference."""
OF_SET = {"labels": {"example.com/farm": "bert", "example.com/pool": "a"}}


@pytest.mark.parametrize(
    ("custom", "body", "expected"),
    [
        (COUNTED, pod_of("Farm", "bert", group="example.com"), ("farm.bert", "", "uid-bert")),
        (COUNTED, pod_of("Farm", "bert", group="other.com"), None),
        (COUNTED, pod_of("ReplicaSet", "s", group="apps", **OF_SET), None),
        (POOLS, pod_of("ReplicaSet", "s", group="apps", **OF_SET), ("farm.bert", "a", "")),
        (POOLS, pod_of("StatefulSet", "s", group="apps", **OF_SET), ("farm.bert", "a", "")),
        (POOLS, pod_of("Farm", "x", group="example.com", **OF_SET), ("farm.x", "a", "uid-x")),
        (POOLS, pod_of("Farm", "bert", group="example.com"), ("farm.bert", "", "uid-bert")),
        (POOLS, pod_of("ReplicaSet", "s", group="apps"), None),
        (POOLS, {"metadata": {"name": "p", **OF_SET}}, ("farm.bert", "a", "")),
        (POOLS, {"metadata": {"name": "p", "ownerReferences": [OWNER], **OF_SET}}, ("farm.bert", "a", "")),
        (POOLS, {"metadata": {"name": "p"}}, None),
        (COUNTED, {"metadata": {"name": "p", **OF_SET}}, None),
    ],
)
def test_a_pod_is_recognised_by_its_controller_or_by_the_label(custom, body, expected):
    found = read(body, kinds(custom)).workload
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert found.declaration is not None
    assert (found.declaration.group, found.declaration.role, found.uid) == expected


def test_a_pod_without_the_label_belongs_to_the_kind_that_it_did_before():
    body = pod_of("StatefulSet", "web", group="apps")
    assert read(body, kinds(POOLS)) == read(body, chosen(Settings()))


def test_a_custom_kind_alone_leaves_the_others_as_they_are_by_default():
    assert list(kinds(POOLS).kinds) == ["farm", *chosen(Settings()).kinds]
    assert list(kinds(POOLS, kinds=["job"]).kinds) == ["farm", "job"]


def test_a_list_names_the_kinds_alone():
    assert validated({"workloads": ["job"]}, "test") == validated({"workloads": {"kinds": ["job"]}}, "test")


@pytest.mark.parametrize(
    ("custom", "told"),
    [
        ([FARM], "workloads.custom[0]: exactly one of replicas and roles is needed"),
        ([POOLS | {"replicas": "spec.n"}], "workloads.custom[0]: exactly one of replicas and roles is needed"),
        ([COUNTED | {"name": "job"}], "workloads.custom[0]: name 'job' is that of a kind of workload"),
        ([COUNTED | {"name": "kai"}], "workloads.custom[0]: name 'kai' is that of a kind of workload"),
        ([COUNTED, COUNTED], "workloads.custom: a name occurs more than once"),
        ([COUNTED | {"apiVersion": "v1"}], "workloads.custom[0].apiVersion must match pattern"),
        ([COUNTED | {"replicas": "worker.replicas"}], "workloads.custom[0].replicas must match pattern"),
        (
            [COUNTED | {"path": "spec.n"}],
            "workloads.custom[0].path is not a known key: correct or remove it; known keys",
        ),
        ([{"name": "farm"}], "workloads.custom[0].apiVersion is missing: write it"),
        ({"a": 1}, "workloads.custom must be a list"),
    ],
)
def test_a_wrong_setting_is_told_by_name(custom, told):
    with pytest.raises(InvalidConfig) as error:
        validated({"workloads": {"custom": custom}}, "test")
    assert f"test: {told}" in str(error.value)
