from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gangsched.api.conversion import group_from_object, made_group
from gangsched.core.objects.declaration import GroupKey, Preference, Role, Topology
from gangsched.core.objects.podgroup import Group, GroupSpec, OnDegraded, TimeoutPolicy
from gangsched.core.objects.record import Phase, Record
from gangsched.core.objects.shape import NodeTerm, Requirement, Shape, Soft, Toleration
from gangsched.core.objects.status import GroupStatus
from gangsched.core.objects.workload import Reference
from tests.api.manifests import ACCEPTED, FULL, MINIMAL, REFUSED, manifest


def spec_of(**fields: Any) -> GroupSpec:
    """The core's spec of a manifest with these fields and minMember 2."""
    group = group_from_object(manifest({"minMember": 2, **fields}))
    assert group.spec is not None, group.error
    return group.spec


@pytest.mark.parametrize("refusal", REFUSED, ids=lambda refusal: refusal.case)
def test_what_the_api_server_refuses_is_an_error_here_too(refusal):
    group = group_from_object(refusal.manifest)
    assert (group.spec, group.error) == (None, refusal.error)


@pytest.mark.parametrize(("_case", "accepted"), ACCEPTED, ids=[case for case, _ in ACCEPTED])
def test_what_the_api_server_accepts_is_accepted_here_too(_case, accepted):
    group = group_from_object(accepted)
    assert group.error == ""
    assert group.spec is not None


def test_the_minimal_group_has_the_defaults():
    assert group_from_object(MINIMAL).spec == GroupSpec(min_member=1)


WORKER = Shape(
    requests=(("cpu", 4000), ("example.com/x", 1000), ("memory", 16 * 2**30), ("nvidia.com/gpu", 1)),
    node_selector=(("kubernetes.io/arch", "amd64"),),
    node_affinity=(
        NodeTerm(
            expressions=(Requirement("gpu", "In", ("h200",)),),
            fields=(Requirement("metadata.name", "NotIn", ("node-1",)),),
        ),
    ),
    tolerations=(
        Toleration(operator="Exists"),
        Toleration(key="nvidia.com/gpu", operator="Equal", value="yes", effect="NoExecute"),
    ),
)
LIKED = Soft(((10, NodeTerm((Requirement("spot", "DoesNotExist"),))),))


def test_the_full_group_is_read_whole():
    assert group_from_object(FULL).spec == GroupSpec(
        min_member=6,
        max_member=12,
        max_schedule_time_s=5400.0,
        timeout_policy=TimeoutPolicy.FAIL,
        priority=1_000_000_000,
        roles=(Role("launcher", 1, 1), Role("worker_2.a", 5, None, WORKER, soft=LIKED)),
        strategy="example.com/my-strategy",
        prefer=(Preference("rack", "Descending"), Preference("tier", values=("gold", ""))),
        on_degraded=OnDegraded.RESTART,
        topology=Topology("topology.kubernetes.io/zone", required=False),
        preempts=False,
        expected_s=7200.0,
    )


def test_a_group_that_is_made_is_read_back_as_it_was_meant():
    roles = (Role("driver", 1), Role("executor", 5, 7, WORKER, soft=LIKED), Role("other", 0, None, Shape(), soft=LIKED))
    spec = GroupSpec(min_member=6, max_schedule_time_s=5400.0, roles=roles)
    made = made_group(GroupKey("default", "app"), spec, Reference("v1", "Pod", "driver", "uid-1"))
    read = group_from_object(made)
    assert (read.key, read.spec, read.made) == (GroupKey("default", "app"), spec, True)
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "driver", "uid": "uid-1"},
    ]


@pytest.mark.parametrize(
    ("asked_s", "made_s"), [(float("inf"), 604800.0), (1.5, 2.0), (0.2, 1.0), (30 * 86400.0, 604800.0)]
)
def test_a_time_of_another_system_is_put_into_the_form_of_a_podgroup(asked_s, made_s):
    """Regression: the API server refused `infs`, so that what was bound in part was not recorded."""
    spec = GroupSpec(min_member=2, max_schedule_time_s=asked_s)
    read = group_from_object(made_group(GroupKey("default", "a"), spec, Reference("v1", "Pod", "p", "uid-1")))
    assert (read.spec and read.spec.max_schedule_time_s, read.error) == (made_s, "")


@pytest.mark.parametrize(("policy", "preempts"), [("Never", False), ("PreemptLowerPriority", True)])
def test_whether_the_group_preempts_is_read(policy, preempts):
    assert spec_of(preemptionPolicy=policy).preempts is preempts


def test_the_priority_class_is_read():
    assert spec_of(priorityClassName="high").priority_class == "high"


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"minMember": 1, "queue": "a"}, "spec.queue"),
        ({"minMember": 1, "min_member": 1}, "spec.min_member"),
        ({"minMember": 1, "placement": {"spread": True}}, "spec.placement.spread"),
        ({"minMember": 1, "roles": [{"name": "a"}, {"name": "b", "weight": 1}]}, "spec.roles[1].weight"),
    ],
)
def test_a_field_of_a_newer_crd_is_an_error_that_names_field_and_remedy(spec, path):
    group = group_from_object(manifest(spec))
    assert group.spec is None
    assert group.error == (
        f"{path} is not a field that this version of gangsched knows: remove it, or upgrade the operator"
    )


def test_several_faults_are_told_in_one_sentence():
    spec = {"minMember": 0, "maxMember": 0, "timeoutPolicy": "Never", "onDegraded": "Never", "queue": "a"}
    assert group_from_object(manifest(spec)).error == (
        "spec.minMember must be greater than or equal to 1; spec.maxMember must be greater than or equal to 1; "
        "spec.timeoutPolicy must be 'Retry' or 'Fail'; and 2 more"
    )


def test_the_metadata_is_read():
    metadata = {
        "namespace": "team",
        "name": "a",
        "uid": "u-1",
        "resourceVersion": "17",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    assert group_from_object({**MINIMAL, "metadata": metadata}) == Group(
        key=GroupKey("team", "a"),
        uid="u-1",
        resource_version="17",
        generation=3,
        created=1_767_225_600.0,
        spec=GroupSpec(min_member=1),
    )


@pytest.mark.parametrize(
    ("references", "owner"),
    [
        ([{"uid": "u-1", "controller": True}], "u-1"),
        ([{"uid": "u-1"}], "u-1"),
        ([{"uid": "u-1"}, {"uid": "u-2", "controller": True}], "u-2"),
        ([], ""),
        ([{"uid": 3}], ""),
        ("u-1", ""),
        ([None, {"uid": "u-2", "controller": True}], "u-2"),
    ],
)
def test_the_owner_is_the_controller_if_there_is_one(references, owner):
    assert group_from_object({**MINIMAL, "metadata": {"name": "a", "ownerReferences": references}}).owner == owner


def test_a_manifest_without_name_is_an_error():
    group = group_from_object({"spec": {"minMember": 1}})
    assert group.error == "metadata.name is required: give the PodGroup a name"


def test_an_object_with_an_error_keeps_its_identity_and_status():
    """Its members wait under its name, and its reservation survives an invalid spec."""
    group = group_from_object({**manifest({"minMember": 0}), "status": {"phase": "Running", "bound": 2}})
    assert (group.key.name, group.status) == ("a", GroupStatus(Record(phase=Phase.RUNNING), bound=2))


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["a", "1h", "Pack"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=5,
)


@given(st.fixed_dictionaries({}, optional={"metadata": anything, "spec": anything, "status": anything, "x": anything}))
def test_no_object_whatever_raises(obj):
    group = group_from_object(obj)
    assert (group.spec is None) is (group.error != "")


def _places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, inner in items for place in _places(inner, (*path, key)))]


@given(place=st.sampled_from(_places(FULL["spec"])[1:]), value=anything)
def test_no_value_anywhere_in_a_spec_raises(place, value):
    obj = copy.deepcopy(FULL)
    target = obj["spec"]
    for key in place[:-1]:
        target = target[key]
    target[place[-1]] = value
    group = group_from_object(obj)
    assert (group.spec is None) is (group.error != "")
