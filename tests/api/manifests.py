"""PodGroups that must be accepted and PodGroups that must be refused, by the API server and by `conversion` alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

Manifest = dict[str, Any]


def manifest(spec: Mapping[str, Any] | None, *, name: str = "a") -> Manifest:
    """A PodGroup with this spec, or without one."""
    made: Manifest = {"apiVersion": "gangsched.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}}
    return made if spec is None else {**made, "spec": dict(spec)}


class Refusal(NamedTuple):
    """An invalid manifest and the required messages of the API server and of `Group.error`."""

    case: str
    manifest: Manifest
    server: tuple[str, ...]
    error: str


def _refusal(case: str, spec: Mapping[str, Any], server: str | tuple[str, ...], error: str) -> Refusal:
    return Refusal(case, manifest({"minMember": 2, **spec}), (server,) if isinstance(server, str) else server, error)


DURATION = "must be hours, minutes and seconds such as 90s, 5m or 1h30m, from 1s to 168h (7 days)"
STRATEGY = (
    "must be one of Pack, Spread, MinimalFragmentation, BestFit, MostUsed, or the name of an installed plug-in, "
    "which contains a slash"
)
ORDER_OR_VALUES = "a preference needs exactly one of order and values: set one and remove the other"
ROLE_NAME = (
    "must be usable as the value of the pod label gangsched.io/role: letters, digits, '-', '_' and '.', "
    "with a letter or digit at both ends"
)
LABEL_KEY = "must be the key of a node label, such as topology.kubernetes.io/zone"
NAME = (
    "metadata.name must have at most 63 characters, because members carry it as the value of the label "
    "gangsched.io/pod-group: choose a shorter name"
)
MAX_MEMBER = "spec.maxMember must be at least spec.minMember: raise maxMember or lower minMember"
ROLES_SUM = (
    "the minMember of all spec.roles together must not exceed spec.maxMember: raise maxMember or lower a role's "
    "minMember"
)
ROLE_MAX = "a role's maxMember must be at least its minMember: raise maxMember or lower minMember"
PRIORITIES = "spec.priority and spec.priorityClassName are mutually exclusive: remove one of them"


def _duration(case: str, text: str) -> Refusal:
    return _refusal(
        case,
        {"maxScheduleTime": text},
        f'spec.maxScheduleTime: Invalid value: "{text}": {DURATION}',
        f"spec.maxScheduleTime {DURATION}",
    )


def _template(case: str, template: Mapping[str, Any], server: str, error: str) -> Refusal:
    path = "spec.roles[0].template"
    roles = [{"name": "worker", "template": template}]
    return _refusal(case, {"roles": roles}, (f"{path}.{server}",), f"{path}.{error}")


REFUSED = (
    Refusal("no spec", manifest(None), ("spec: Required value",), "spec is required: set at least spec.minMember"),
    Refusal("a name of 64 characters", manifest({"minMember": 1}, name="a" * 64), (NAME,), NAME),
    Refusal("no minMember", manifest({}), ("spec.minMember: Required value",), "spec.minMember is required: set it"),
    _refusal(
        "minMember 0",
        {"minMember": 0},
        "spec.minMember in body should be greater than or equal to 1",
        "spec.minMember must be greater than or equal to 1",
    ),
    _refusal(
        "minMember beyond an int32",
        {"minMember": 2**31},
        "spec.minMember in body should be less than or equal to 2147483647",
        "spec.minMember must be less than or equal to 2147483647",
    ),
    _refusal(
        "minMember as text",
        {"minMember": "2"},
        'spec.minMember in body must be of type integer: "string"',
        "spec.minMember must be a valid integer",
    ),
    _refusal("maxMember below minMember", {"maxMember": 1}, MAX_MEMBER, MAX_MEMBER),
    _refusal(
        "maxMember 0",
        {"maxMember": 0},
        "spec.maxMember in body should be greater than or equal to 1",
        "spec.maxMember must be greater than or equal to 1",
    ),
    _duration("maxScheduleTime without unit", "90"),
    _duration("maxScheduleTime in an unknown unit", "1d"),
    _duration("maxScheduleTime with a fraction", "1.5m"),
    _duration("maxScheduleTime in the wrong order", "30m1h"),
    _duration("maxScheduleTime negative", "-5m"),
    _duration("maxScheduleTime 0s", "0s"),
    _duration("maxScheduleTime a second over 7 days", "168h1s"),
    _duration("maxScheduleTime as large as the form permits", "999999h999999m999999s"),
    _duration("maxScheduleTime with more digits than the form permits", "9999999h"),
    _refusal(
        "maxScheduleTime empty",
        {"maxScheduleTime": ""},
        "spec.maxScheduleTime in body should be at least 1 chars long",
        "spec.maxScheduleTime must have at least 1 character",
    ),
    _refusal(
        "an unknown timeoutPolicy",
        {"timeoutPolicy": "Restart"},
        'spec.timeoutPolicy: Unsupported value: "Restart": supported values: "Retry", "Fail"',
        "spec.timeoutPolicy must be 'Retry' or 'Fail'",
    ),
    _refusal(
        "priority over a thousand million",
        {"priority": 10**9 + 1},
        "spec.priority in body should be less than or equal to 1000000000",
        "spec.priority must be less than or equal to 1000000000",
    ),
    _refusal("priority and priorityClassName", {"priority": 1, "priorityClassName": "high"}, PRIORITIES, PRIORITIES),
    _refusal(
        "two roles of one name",
        {"roles": [{"name": "worker"}, {"name": "worker"}]},
        'spec.roles[1]: Duplicate value: {"name":"worker"}',
        "spec.roles: name 'worker' occurs more than once: give every entry a different name",
    ),
    _refusal(
        "a role without name",
        {"roles": [{"minMember": 1}]},
        "spec.roles[0].name: Required value",
        "spec.roles[0].name is required: set it",
    ),
    _refusal(
        "a role whose name is no label value",
        {"roles": [{"name": "worker-"}]},
        f'spec.roles[0].name: Invalid value: "worker-": {ROLE_NAME}',
        f"spec.roles[0].name {ROLE_NAME}",
    ),
    _refusal(
        "a role with a name of 64 characters",
        {"roles": [{"name": "r" * 64}]},
        "spec.roles[0].name: Too long: may not be more than 63 bytes",
        "spec.roles[0].name must have at most 63 characters",
    ),
    _refusal(
        "65 roles",
        {"roles": [{"name": f"r{i}"} for i in range(65)]},
        "spec.roles: Too many: 65: must have at most 64 items",
        "spec.roles must have at most 64 items, not 65",
    ),
    _refusal(
        "a role's minMember -1",
        {"roles": [{"name": "worker", "minMember": -1}]},
        "spec.roles[0].minMember in body should be greater than or equal to 0",
        "spec.roles[0].minMember must be greater than or equal to 0",
    ),
    _refusal(
        "a role's maxMember below its minMember",
        {"roles": [{"name": "worker", "minMember": 3, "maxMember": 2}]},
        ("spec.roles[0]: Invalid value", ROLE_MAX),
        f"spec.roles[0]: {ROLE_MAX}",
    ),
    _refusal(
        "roles' minima over maxMember",
        {"maxMember": 4, "roles": [{"name": "ps", "minMember": 2}, {"name": "worker", "minMember": 3}]},
        ROLES_SUM,
        ROLES_SUM,
    ),
    _refusal(
        "an unknown strategy without a slash",
        {"placement": {"strategy": "Binpack"}},
        f'spec.placement.strategy: Invalid value: "Binpack": {STRATEGY}',
        f"spec.placement.strategy {STRATEGY}",
    ),
    _refusal(
        "a topology without key",
        {"placement": {"topology": {"mode": "Required"}}},
        "spec.placement.topology.key: Required value",
        "spec.placement.topology.key is required: set it",
    ),
    _refusal(
        "a topology key that is no label key",
        {"placement": {"topology": {"key": "rack id"}}},
        f'spec.placement.topology.key: Invalid value: "rack id": {LABEL_KEY}',
        f"spec.placement.topology.key {LABEL_KEY}",
    ),
    _refusal(
        "an unknown topology mode",
        {"placement": {"topology": {"key": "zone", "mode": "Hard"}}},
        'spec.placement.topology.mode: Unsupported value: "Hard": supported values: "Required", "Preferred"',
        "spec.placement.topology.mode must be 'Required' or 'Preferred'",
    ),
    _refusal(
        "a preference with order and values",
        {"placement": {"prefer": [{"key": "zone", "order": "Ascending", "values": ["a"]}]}},
        ("spec.placement.prefer[0]: Invalid value", ORDER_OR_VALUES),
        f"spec.placement.prefer[0]: {ORDER_OR_VALUES}",
    ),
    _refusal(
        "a preference with neither order nor values",
        {"placement": {"prefer": [{"key": "zone"}]}},
        ("spec.placement.prefer[0]: Invalid value", ORDER_OR_VALUES),
        f"spec.placement.prefer[0]: {ORDER_OR_VALUES}",
    ),
    _refusal(
        "a preference with an unknown order",
        {"placement": {"prefer": [{"key": "zone", "order": "Random"}]}},
        'spec.placement.prefer[0].order: Unsupported value: "Random": supported values: "Ascending", "Descending"',
        "spec.placement.prefer[0].order must be 'Ascending' or 'Descending'",
    ),
    _refusal(
        "an unknown onDegraded",
        {"onDegraded": "Retry"},
        'spec.onDegraded: Unsupported value: "Retry": supported values: "Repair", "Restart", "Ignore"',
        "spec.onDegraded must be 'Repair', 'Restart' or 'Ignore'",
    ),
    _refusal(
        "an unknown preemptionPolicy",
        {"preemptionPolicy": "Always"},
        'spec.preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", "Never"',
        "spec.preemptionPolicy must be 'PreemptLowerPriority' or 'Never'",
    ),
    _template(
        "a template's request that is no quantity",
        {"requests": {"cpu": "abc"}},
        "requests.cpu in body should match",
        "requests.cpu must be a quantity that is not negative, such as 2, 500m or 16Gi",
    ),
    _template(
        "a template's request that is negative",
        {"requests": {"nvidia.com/gpu": -1}},
        "requests.nvidia.com/gpu in body should be greater than or equal to 0",
        "requests[nvidia.com/gpu] must be a quantity that is not negative, such as 2, 500m or 16Gi",
    ),
    _template(
        "a template's unknown taint effect",
        {"tolerations": [{"key": "gpu", "effect": "Never"}]},
        'tolerations[0].effect: Unsupported value: "Never"',
        "tolerations[0].effect must be 'NoSchedule', 'PreferNoSchedule' or 'NoExecute'",
    ),
    _template(
        "a template's node selector operator that does not exist",
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Is"}]}]
                    }
                }
            }
        },
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
        'matchExpressions[0].operator: Unsupported value: "Is"',
        "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
        "matchExpressions[0].operator must be 'In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt' or 'Lt'",
    ),
)

MINIMAL = manifest({"minMember": 1})

FULL = manifest(
    {
        "minMember": 6,
        "maxMember": 12,
        "maxScheduleTime": "1h30m",
        "timeoutPolicy": "Fail",
        "ttlAfterFinished": "168h",
        "priority": 1_000_000_000,
        "preemptionPolicy": "Never",
        "expectedRunTime": "2h",
        "roles": [
            {"name": "launcher", "minMember": 1, "maxMember": 1},
            {
                "name": "worker_2.a",
                "minMember": 5,
                "template": {
                    "requests": {"cpu": 4, "memory": "16Gi", "nvidia.com/gpu": "1", "example.com/x": "1e3"},
                    "nodeSelector": {"kubernetes.io/arch": "amd64"},
                    "affinity": {
                        "nodeAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {
                                        "matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h200"]}],
                                        "matchFields": [
                                            {"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}
                                        ],
                                    }
                                ]
                            },
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "weight": 10,
                                    "preference": {"matchExpressions": [{"key": "spot", "operator": "DoesNotExist"}]},
                                }
                            ],
                        }
                    },
                    "tolerations": [
                        {"operator": "Exists"},
                        {
                            "key": "nvidia.com/gpu",
                            "operator": "Equal",
                            "value": "yes",
                            "effect": "NoExecute",
                            "tolerationSeconds": 300,
                        },
                    ],
                },
            },
        ],
        "placement": {
            "strategy": "example.com/my-strategy",
            "topology": {"key": "topology.kubernetes.io/zone", "mode": "Preferred"},
            "prefer": [{"key": "rack", "order": "Descending"}, {"key": "tier", "values": ["gold", ""]}],
        },
        "onDegraded": "Restart",
    },
    name="a" * 63,
)

ACCEPTED = (
    ("the minimal group", MINIMAL),
    ("the full group", FULL),
    ("a PriorityClass instead of a number", manifest({"minMember": 1, "priorityClassName": "high"})),
    ("the lowest priority", manifest({"minMember": 1, "priority": -(2**31)})),
    ("the shortest maxScheduleTime", manifest({"minMember": 1, "maxScheduleTime": "1s"})),
    ("the longest maxScheduleTime", manifest({"minMember": 1, "maxScheduleTime": "604800s"})),
    ("maxMember equal to minMember", manifest({"minMember": 2**31 - 1, "maxMember": 2**31 - 1})),
    (
        "roles' minima equal to maxMember and over minMember",
        manifest(
            {"minMember": 1, "maxMember": 3, "roles": [{"name": "a", "minMember": 2}, {"name": "b", "minMember": 1}]}
        ),
    ),
    (
        "as many roles as there may be, with the largest minima",
        manifest({"minMember": 1, "roles": [{"name": f"r{i}", "minMember": 2**31 - 1} for i in range(64)]}),
    ),
)
