"""Declarations in other systems' custom resources, as tables, and how pods refer to them."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from gangsched.config.dialects import NAMES as DEFAULT_NAMES
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Declaration, GroupKey, Level, Role, Topology
from gangsched.core.objects.pod import DeviceUse
from gangsched.core.objects.podgroup import ForeignGroup, GroupSpec
from gangsched.core.objects.record import Choice, Minima
from gangsched.kube.dialects.dialect_table import DEFAULT, chosen
from gangsched.kube.reading.pod_values import decode_pod, pod_value

CREATED = "2024-05-06T07:08:09Z"


def read(dialect: str, spec: object, **metadata: Any) -> ForeignGroup:
    meta = {"name": "g", "namespace": "n", "uid": "u", "resourceVersion": "7", "creationTimestamp": CREATED}
    body = {"metadata": meta | metadata, "spec": spec}
    version, found = DEFAULT.kinds[dialect].read(dialect, json.dumps(body).encode())
    assert version == "7"
    return found


def error(dialect: str, spec: object, **metadata: Any) -> str:
    found = read(dialect, spec, **metadata)
    assert found.spec is None
    head = f"{DEFAULT.kinds[dialect].name} g: "
    assert found.error.startswith(head)
    assert found.error.endswith(".")
    return found.error.removeprefix(head).removesuffix(".")


def test_each_kind_is_where_its_system_serves_it():
    assert {dialect: (kind.name, kind.resource.versions) for dialect, kind in DEFAULT.kinds.items()} == {
        "koordinator": ("podgroups.scheduling.sigs.k8s.io", ("v1alpha1",)),
        "scheduler-plugins": ("podgroups.scheduling.x-k8s.io", ("v1alpha1",)),
        "volcano": ("podgroups.scheduling.volcano.sh", ("v1beta1",)),
        "kai": ("podgroups.scheduling.run.ai", ("v2alpha2",)),
        "tenstack": ("podgroups.batch.scheduler.tencent.com", ("v1",)),
        "native": ("podgroups.scheduling.k8s.io", ("v1beta1", "v1alpha3", "v1alpha2")),
        "native-composite": ("compositepodgroups.scheduling.k8s.io", ("v1alpha3",)),
    }
    assert list(chosen(Settings(dialects=("gangsched", "kai"))).kinds) == ["kai"]


def test_the_object_is_known_by_dialect_name_and_uid_and_by_its_age():
    found = read("tenstack", {"minMember": 3})
    assert found == ForeignGroup(
        dialect="tenstack",
        key=GroupKey("n", "g"),
        uid="u",
        created=1714979289.0,
        spec=GroupSpec(min_member=3),
    )


def roles(**minima: int) -> tuple[Role, ...]:
    return tuple(Role(name=name, min_member=number) for name, number in sorted(minima.items()))


TERMS: list[tuple[str, dict[str, Any], GroupSpec]] = [
    (
        "tenstack",
        {"minMember": 5, "minResources": {"cpu": "500m", "memory": "0.1"}},
        GroupSpec(min_member=5, min_resources=(("cpu", 2500), ("memory", 1))),
    ),
    ("tenstack", {"minMember": 5, "maxScheduleTime": "1h30m0s"}, GroupSpec(min_member=5, max_schedule_time_s=5400.0)),
    ("tenstack", {"minMember": 5, "maxScheduleTime": "1.5s"}, GroupSpec(min_member=5, max_schedule_time_s=1.5)),
    ("tenstack", {"minMember": 5, "maxScheduleTime": "0s"}, GroupSpec(min_member=5)),
    ("tenstack", {"minMember": 1, "priorityClassName": "high"}, GroupSpec(min_member=1, priority_class="high")),
    *(
        (dialect, spec, terms)
        for dialect in ("scheduler-plugins", "koordinator")
        for spec, terms in (
            (
                {"minMember": 3, "minResources": {"cpu": 4, "pods": 3}},
                GroupSpec(min_member=3, min_resources=(("cpu", 4000),)),
            ),
            ({"minMember": 3, "scheduleTimeoutSeconds": 10}, GroupSpec(min_member=3, max_schedule_time_s=10.0)),
            ({"minMember": 3, "scheduleTimeoutSeconds": 0}, GroupSpec(min_member=3)),
            ({"minMember": 3, "scheduleTimeoutSeconds": None}, GroupSpec(min_member=3)),
        )
    ),
    (
        "volcano",
        {"minMember": 3, "queue": "q", "minResources": {"cpu": "3", "pods": "3", "nvidia.com/gpu": 8}},
        GroupSpec(min_member=3, min_resources=(("cpu", 3000), ("nvidia.com/gpu", 8))),
    ),
    (
        "volcano",
        {
            "minMember": 3,
            "minResources": {
                "cpu": "3",
                "count/pods": "3",
                "pods": "3",
                "requests.cpu": "3",
                "limits.cpu": "6",
                "requests.nvidia.com/gpu": "3",
                "limits.nvidia.com/gpu": "3",
            },
        },
        GroupSpec(min_member=3, min_resources=(("cpu", 3000),)),
    ),
    ("volcano", {"minMember": 1, "priorityClassName": "high"}, GroupSpec(min_member=1, priority_class="high")),
    (
        "volcano",
        {"minMember": 2, "minTaskMember": {"worker": 2, "master": 1, "ps": 0}},
        GroupSpec(min_member=2, roles=roles(master=1, ps=0, worker=2)),
    ),
    ("volcano", {"minTaskMember": {"worker": 2}}, GroupSpec(min_member=1, roles=roles(worker=2))),
    ("volcano", {"minMember": 2, "networkTopology": {"mode": "soft"}}, GroupSpec(min_member=2)),
    (
        "volcano",
        {"minMember": 2, "networkTopology": {"highestTierAllowed": 1}, "subGroupPolicy": [{"name": "a"}]},
        GroupSpec(min_member=2, not_built=("spec.networkTopology of mode hard", "spec.subGroupPolicy")),
    ),
    ("kai", {"minMember": 4, "queue": "q", "priorityClassName": "train"}, GroupSpec(4, priority_class="train")),
    (
        "kai",
        {"minSubGroup": 2, "subGroups": [{"name": "b", "minMember": 3}, {"name": "a", "minMember": 2}]},
        GroupSpec(min_member=1, roles=roles(a=2, b=3)),
    ),
    (
        "kai",
        {
            "minMember": 6,
            "subGroups": [
                {"name": "top", "minMember": 3},
                {"name": "a", "parent": "top"},
                {"name": "b", "minMember": 2, "parent": "top"},
                {"name": "c", "minMember": 3},
            ],
        },
        GroupSpec(min_member=6, roles=roles(a=1, b=2, c=3)),
    ),
    (
        "kai",
        {"minMember": 2, "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"}},
        GroupSpec(min_member=2, topology=Topology("rack")),
    ),
    (
        "kai",
        {"minMember": 2, "topologyConstraint": {"preferredTopologyLevel": "rack"}},
        GroupSpec(min_member=2, topology=Topology("rack", required=False)),
    ),
    ("kai", {"minMember": 2, "topologyConstraint": {}}, GroupSpec(min_member=2)),
    (
        "kai",
        {"subGroups": [{"name": "a", "minMember": 2}, {"name": "b", "minMember": 0}]},
        GroupSpec(min_member=1, roles=roles(a=2, b=0)),
    ),
    (
        "kai",
        {
            "minSubGroup": 1,
            "subGroups": [
                {"name": "top", "minSubGroup": 1},
                {"name": "a", "minMember": 1, "parent": "top"},
                {"name": "b", "minMember": 2, "parent": "top", "topologyConstraint": {"requiredTopologyLevel": "r"}},
            ],
        },
        GroupSpec(
            min_member=1,
            roles=roles(a=1, b=2),
            levels=(Level("r", ("b",)),),
            tree=Minima(
                1,
                choices=(
                    Choice(
                        1,
                        (
                            Minima(1, (("a", 1),), name="subgroup a"),
                            Minima(2, (("b", 2),), name="subgroup b"),
                        ),
                        "subgroup top",
                    ),
                ),
                name="group",
            ),
        ),
    ),
    (
        "kai",
        {
            "minMember": 5,
            "minSubGroup": 3,
            "subGroups": [
                {"name": "top", "minMember": 9},
                {"name": "a", "minMember": 0, "parent": "top", "topologyConstraint": {"requiredTopologyLevel": "r"}},
            ],
        },
        GroupSpec(
            min_member=2,
            roles=roles(a=0),
            levels=(Level("r", ("a",)),),
            tree=Minima(2, choices=(Choice(3, (Minima(0, (("a", 0),), name="subgroup top"),), "group"),), name="group"),
            not_built=(
                "a minSubGroup of 0, or above the number of subgroups",
                "spec.minMember above what the needed subgroups ask for",
                "spec.subGroups (top).minMember above the sum of its subgroups'",
                "spec.subGroups (a).topologyConstraint.requiredTopologyLevel with a minimum of 0",
            ),
        ),
    ),
    ("native", {"schedulingPolicy": {"gang": {"minCount": 4}}}, GroupSpec(min_member=4)),
    ("native", {"schedulingPolicy": {"basic": {}}}, GroupSpec(min_member=1, max_schedule_time_s=inf)),
    *(
        (
            "native",
            {
                "schedulingPolicy": policy,
                "schedulingConstraints": {"topology": [{"key": "rack"}]},
                "priority": 7,
                "priorityClassName": "high",
            },
            GroupSpec(least, priority=7, priority_class="high", topology=Topology("rack"), max_schedule_time_s=wait_s),
        )
        for policy, least, wait_s in (({"gang": {"minCount": 4}}, 4, None), ({"basic": {}}, 1, inf))
    ),
    # What admission writes where there is no class, and in 1.37 where the group does not say otherwise.
    *(
        ("native", {"schedulingPolicy": {"gang": {"minCount": 4}}} | fields, GroupSpec(4, **kept))
        for fields, kept in (
            ({"priority": 0, "priorityClassName": ""}, {"priority": None}),
            ({"priority": 0, "priorityClassName": "low"}, {"priority": 0, "priority_class": "low"}),
            ({"disruptionMode": {"single": {}}, "preemptionPolicy": "PreemptLowerPriority"}, {}),
            ({"disruptionMode": {"all": {}}}, {"preempted_whole": True}),
            ({"disruptionMode": "Pod"}, {}),
            ({"disruptionMode": "PodGroup"}, {"preempted_whole": True}),
            ({"preemptionPolicy": "Never"}, {"preempts": False}),
        )
    ),
    (
        "native",
        {"schedulingPolicy": {"gang": {"minCount": 4}}, "parentCompositePodGroupName": "whole"},
        GroupSpec(4),
    ),
    (
        "native",
        {"schedulingPolicy": {"basic": {}}, "parentCompositePodGroupName": "whole"},
        GroupSpec(min_member=1, max_schedule_time_s=inf),
    ),
    ("native", {"schedulingPolicy": {"gang": {"minCount": 4}}, "parentCompositePodGroupName": None}, GroupSpec(4)),
    ("native", {"schedulingPolicy": {"gang": {"minCount": 4}}, "resourceClaims": []}, GroupSpec(4)),
    (
        "native",
        {
            "schedulingPolicy": {"gang": {"minCount": 4}},
            "resourceClaims": [
                {"name": "made", "resourceClaimTemplateName": "one-gpu"},
                {"name": "named", "resourceClaimName": "switch"},
            ],
        },
        GroupSpec(4, device_claims=(DeviceUse("made", template="one-gpu"), DeviceUse("named", "switch"))),
    ),
    *(
        (
            "native",
            {"schedulingPolicy": policy, "schedulingConstraints": {"topology": [{"key": "rack"}, {"key": "zone"}]}},
            GroupSpec(
                least,
                max_schedule_time_s=wait_s,
                topology=Topology("rack"),
                not_built=("spec.schedulingConstraints.topology of several keys",),
            ),
        )
        for policy, least, wait_s in (({"gang": {"minCount": 4}}, 4, None), ({"basic": {}}, 1, inf))
    ),
]


@pytest.mark.parametrize(("dialect", "spec", "terms"), TERMS)
def test_the_terms_are_those_that_the_object_states(dialect: str, spec: dict[str, Any], terms: GroupSpec) -> None:
    found = read(dialect, spec)
    assert (found.spec, found.error) == (terms, "")


@pytest.mark.parametrize("dialect", ["tenstack", "scheduler-plugins", "koordinator", "volcano", "kai"])
@pytest.mark.parametrize("number", [0, -1, 2**31, 4294967295])
def test_a_minimum_out_of_range_is_told(dialect: str, number: int) -> None:
    said = f"spec.minMember is {number}: write a whole number from 1 to 2147483647"
    assert error(dialect, {"minMember": number}) == said


@pytest.mark.parametrize("dialect", DEFAULT.kinds)
@pytest.mark.parametrize("spec", ["text", [], None, 7, {"minMember": "three", "schedulingPolicy": "gang"}])
def test_what_has_another_form_is_told_and_spoils_nothing_else(dialect: str, spec: object) -> None:
    assert error(dialect, spec).startswith(("spec cannot be read (", "spec.minMember is 0"))


@pytest.mark.parametrize(
    ("dialect", "spec", "said"),
    [
        ("tenstack", {"minMember": 2, "maxScheduleTime": "soon"}, "spec.maxScheduleTime is 'soon': write a duration"),
        ("tenstack", {"minMember": 2, "maxScheduleTime": "-5s"}, "spec.maxScheduleTime is '-5s': write a duration"),
        ("tenstack", {"minMember": 2, "maxScheduleTime": "200h"}, "spec.maxScheduleTime is 720000 s: write 1 s to"),
        ("scheduler-plugins", {"minMember": 2, "scheduleTimeoutSeconds": -1}, "spec.scheduleTimeoutSeconds is -1 s:"),
        ("volcano", {"minMember": 2, "minTaskMember": {"a": -1}}, "spec.minTaskMember (a) is -1: write a whole number"),
        ("volcano", {"minTaskMember": {"a": 0}}, "spec.minMember is 0: "),
        *(
            (
                dialect,
                {"minMember": 1, "minResources": {"cpu": text}},
                f"spec.minResources (cpu) is {text!r}: write an amount such as 8 or 16Gi",
            )
            for dialect in ("volcano", "scheduler-plugins", "koordinator", "tenstack")
            for text in ("many", "-1")
        ),
        (
            "volcano",
            {"minMember": 2, "minTaskMember": {str(number): 1 for number in range(65)}},
            "spec.minTaskMember has 65 entries: write at most 64",
        ),
        ("kai", {"minMember": 2, "subGroups": [{"name": "a", "minMember": -1}]}, "spec.subGroups (a).minMember is -1:"),
        ("kai", {"subGroups": [{"name": "a", "minMember": 0}]}, "spec.minMember is 0: "),
        (
            "kai",
            {"minMember": 2, "subGroups": [{"name": "a"}, {"name": "a"}]},
            "spec.subGroups has an empty or duplicate name 'a'",
        ),
        ("kai", {"minMember": 2, "subGroups": [{}]}, "spec.subGroups has an empty or duplicate name ''"),
        ("kai", {"minMember": 2, "subGroups": [{"name": "a", "parent": "b"}]}, "spec.subGroups names the parent 'b'"),
        (
            "kai",
            {"minMember": 2, "subGroups": [{"name": "a", "parent": "b"}, {"name": "b", "parent": "a"}]},
            "spec.subGroups (a) is its own ancestor",
        ),
        (
            "kai",
            {"minMember": 2, "subGroups": [{"name": str(number)} for number in range(5000)]},
            "spec.subGroups has 5000 entries: write at most 64",
        ),
        ("native", {}, "spec.schedulingPolicy does not have exactly one of gang and basic: write one of them"),
        ("native", {"schedulingPolicy": {}}, "spec.schedulingPolicy does not have exactly one of gang and basic"),
        ("native", {"schedulingPolicy": {"gang": {"minCount": 1}, "basic": {}}}, "spec.schedulingPolicy does not have"),
        ("native", {"schedulingPolicy": {"gang": {}}}, "spec.schedulingPolicy.gang.minCount is 0: write a whole"),
    ],
)
def test_what_cannot_be_meant_is_told_with_field_and_remedy(dialect: str, spec: dict[str, Any], said: str) -> None:
    assert error(dialect, spec).startswith(said)


GROUPS = "gang.scheduling.koordinator.sh/groups"


NETWORK = "gang.scheduling.koordinator.sh/network-topology-spec"
MUST = '{"gatherStrategy": [{"layer": "B", "strategy": "MustGather"}]}'
MUST_GATHER = GroupSpec(2, not_built=(f"the annotation {NETWORK} with the strategy MustGather",))


@pytest.mark.parametrize(
    ("annotations", "spec", "told"),
    [
        ({GROUPS: '["n/g"]', NETWORK: ""}, GroupSpec(2), ""),
        ({GROUPS: '["n/g", "n/h"]'}, None, f"The annotation {GROUPS} is "),
        ({NETWORK: MUST.replace("Must", "Prefer")}, GroupSpec(2), ""),
        ({NETWORK: MUST}, MUST_GATHER, ""),
        ({NETWORK: "["}, None, f"The annotation {NETWORK} is "),
    ],
)
def test_koordinators_annotations_mean_on_an_object_what_they_mean_on_a_pod(annotations, spec, told) -> None:
    """`test_dialects.py` has each text that they may have."""
    found = read("koordinator", {"minMember": 2}, annotations=annotations)
    assert found.spec == spec
    assert found.error.partition(": ")[2].startswith(told)
    assert not found.error.endswith("..")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                (
                    *("minMember", "minTaskMember", "maxScheduleTime", "scheduleTimeoutSeconds", "subGroups", "name"),
                    *("parent", "minSubGroup", "schedulingPolicy", "gang", "basic", "minCount", "topologyConstraint"),
                )
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(sorted(DEFAULT.kinds)), JSON)
def test_nothing_that_an_object_can_say_raises(dialect: str, spec: object) -> None:
    found = read(dialect, spec)
    assert (found.spec is None) == bool(found.error)
    assert len(found.error) < 600


# Pods


def declared(labels: dict[str, str], annotations: dict[str, str], group: str = "") -> Declaration:
    """The declaration of a pod that has one; `group` is the native group in its spec."""
    found = DEFAULT.declaration(labels, annotations, scheduling_group=group)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("labels", "annotations", "group", "expected"),
    [
        ({"group.batch.scheduler.tencent.com": "g"}, {}, "", ("tenstack", "g", None, "")),
        ({"scheduling.x-k8s.io/pod-group": "g"}, {}, "", ("scheduler-plugins", "g", None, "")),
        (
            {"scheduling.x-k8s.io/pod-group": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "3"},
            {},
            "",
            ("scheduler-plugins", "g", 3, ""),
        ),
        ({"pod-group.scheduling.sigs.k8s.io": "g"}, {}, "", ("koordinator", "g", None, "")),
        ({}, {"scheduling.k8s.io/group-name": "g"}, "", ("volcano", "g", None, "")),
        (
            {"volcano.sh/task-spec": "b"},
            {"scheduling.volcano.sh/group-name": "g", "scheduling.volcano.sh/group-min-member": "4"},
            "",
            ("volcano", "g", 4, "b"),
        ),
        (
            {"volcano.sh/task-spec": "b"},
            {"scheduling.k8s.io/group-name": "g", "volcano.sh/task-spec": "a"},
            "",
            ("volcano", "g", None, "a"),
        ),
        ({"kai.scheduler/subgroup-name": "a"}, {"pod-group-name": "g"}, "", ("kai", "g", None, "a")),
        ({}, {}, "g", ("native", "g", None, "")),
    ],
)
def test_a_pod_names_its_group_and_says_little_else(labels, annotations, group, expected):
    found = declared(labels, annotations, group)
    assert (found.source, found.group, found.min_member, found.role) == expected
    assert (found.error, found.contradiction) == ("", "")
    assert found.objects == (found.source,)


NAMING: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "gangsched": ({"gangsched.io/pod-group": "ring"}, {}),
    "palantir": ({"spark-app-id": "ring", "spark-role": "executor"}, {}),
    "cosmin": (
        {"spark-app-selector": "ring", "spark-role": "driver", "executors": "2", "exec-cpu": "1", "exec-mem": "1"},
        {},
    ),
    "pfnet": ({}, {"gang-scheduling.preferred.jp/gang-name": "ring", "gang-scheduling.preferred.jp/gang-size": "3"}),
    "kueue": ({"kueue.x-k8s.io/pod-group-name": "ring"}, {}),
    "koordinator": ({}, {"gang.scheduling.koordinator.sh/name": "ring"}),
    "scheduler-plugins": ({"scheduling.x-k8s.io/pod-group": "ring"}, {}),
    "yunikorn": ({"applicationId": "ring"}, {"yunikorn.apache.org/task-group-name": "w"}),
    "volcano": ({}, {"scheduling.k8s.io/group-name": "ring"}),
    "kai": ({}, {"pod-group-name": "ring"}),
    "tenstack": ({"group.batch.scheduler.tencent.com": "ring"}, {}),
}
"""Labels and annotations that name the group ring, for each dialect that has any."""


@pytest.mark.parametrize("dialect", [name for name in DEFAULT_NAMES if name != "native"])
def test_the_group_that_the_user_names_in_any_dialect_wins_over_the_native_one(dialect):
    """The Job controller adds a native group to the pods of every Job, and the field cannot be changed."""
    labels, annotations = NAMING[dialect]
    alone = DEFAULT.declaration(labels, annotations)
    found = DEFAULT.declaration(labels, annotations, scheduling_group="ring-7d9f")
    assert alone is not None
    assert found == structs.replace(alone, passed_over="ring-7d9f")
    assert (found.source, found.group, found.contradiction, found.error) == (dialect, "ring", "", "")


def test_a_task_group_without_an_application_names_no_group_beside_a_native_one():
    found = declared({}, {"yunikorn.apache.org/task-group-name": "w"}, "n")
    assert (found.source, found.group, found.passed_over) == ("native", "n", "")


def test_two_groups_that_the_user_names_contradict_each_other_beside_a_native_one_too():
    (labels, _), (_, annotations) = NAMING["kueue"], ({}, {"pod-group-name": "other"})
    found = declared(labels, annotations, "ring-7d9f")
    assert "Its group is 'ring'" in found.contradiction


def test_a_native_group_of_the_name_in_gangscheds_own_label_is_the_same_group():
    same = declared({"gangsched.io/pod-group": "train"}, {}, "train")
    assert (same.passed_over, same.objects) == ("", ("native",))


def test_the_native_group_is_read_from_the_pods_spec_and_no_annotation_can_feign_it():
    body = {"metadata": {"name": "p"}, "spec": {"schedulingGroup": {"podGroupName": "g"}}}
    found = pod_value(decode_pod(json.dumps(body).encode())).declaration
    assert found is not None
    assert (found.source, found.group, found.keys.group) == (
        "native",
        "g",
        "the field spec.schedulingGroup.podGroupName",
    )
    assert DEFAULT.declaration({}, {"spec.schedulingGroup.podGroupName": "g"}) is None
    assert chosen(Settings(dialects=("gangsched", "volcano"))).declaration({}, {}, scheduling_group="g") is None


def test_a_pod_in_two_systems_words_is_told_by_both_objects():
    found = DEFAULT.declaration(
        {"kueue.x-k8s.io/pod-group-name": "g"}, {"pod-group-name": "g", "scheduling.k8s.io/group-name": "g"}
    )
    assert found is not None
    assert (found.source, found.objects, found.keys.kind) == (
        "kueue",
        ("volcano", "kai"),
        "podgroups.scheduling.volcano.sh",
    )
    assert found.open_roles
