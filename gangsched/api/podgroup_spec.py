"""The spec of a PodGroup: the single definition of its fields, their meaning and their validation.

The CustomResourceDefinition, the parser of manifests without an API server and the reference in docs/ come from here.
`kubectl explain podgroups.gangsched.io` prints the descriptions. Lists, strings and maps are bounded, because the API
server estimates the cost of CEL rules from their largest size and refuses the CRD above a limit.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, Strict

from gangsched.api.role_template import LabelKey, LabelValue, MemberTemplate
from gangsched.api.schema import Count, Int32, ListMap, PodGroupPart, Rule, matching
from gangsched.core.objects.duration import LONGEST_S, PATTERN, SHORTEST_S, parse_duration
from gangsched.core.objects.podgroup import OnDegraded, TimeoutPolicy
from gangsched.core.objects.strategy import BUILT_IN

MAX_NAME = 63
"""A PodGroup's name is the value of its members' label `gangsched.io/pod-group`, which has at most 63 characters."""

NAME_RULE = Rule(
    f"self.metadata.name.size() <= {MAX_NAME}",
    f"metadata.name must have at most {MAX_NAME} characters, because members carry it as the value of the label "
    "gangsched.io/pod-group: choose a shorter name",
    lambda name: len(name) <= MAX_NAME,
)
"""The only rule on the whole object; in Python it checks only the name."""


def _is_duration(text: str) -> bool:
    try:
        parse_duration(text)
    except ValueError:
        return False
    return True


Duration = Annotated[
    str,
    Field(min_length=1, max_length=32),
    Rule(
        f"self.matches(r'{PATTERN}') && "
        f"duration(self) >= duration('{SHORTEST_S}s') && duration(self) <= duration('{LONGEST_S}s')",
        "must be hours, minutes and seconds such as 90s, 5m or 1h30m, from 1s to 168h (7 days)",
        _is_duration,
    ),
]

Strategy = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Rule(
        f"self in [{', '.join(repr(name) for name in BUILT_IN)}] || self.contains('/')",
        f"must be one of {', '.join(BUILT_IN)}, or the name of an installed plug-in, which contains a slash",
        lambda name: name in BUILT_IN or "/" in name,
    ),
]

RoleName = Annotated[
    str,
    Field(min_length=1, max_length=63),
    matching(
        r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        "must be usable as the value of the pod label gangsched.io/role: letters, digits, '-', '_' and '.', "
        "with a letter or digit at both ends",
    ),
]

NodeLabelKey = Annotated[
    LabelKey,
    matching(
        r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
        "must be the key of a node label, such as topology.kubernetes.io/zone",
    ),
]


class Role(PodGroupPart):
    """A named part of the group with its own minimum; pods join it with the label gangsched.io/role."""

    rules: ClassVar = (
        Rule(
            "!has(self.maxMember) || self.maxMember >= self.minMember",
            "a role's maxMember must be at least its minMember: raise maxMember or lower minMember",
            lambda role: role.max_member is None or role.max_member >= role.min_member,
        ),
    )

    name: RoleName = Field(description="Name of the role, unique in the group: the value of the pods' label.")
    min_member: Count = Field(
        default=0,
        description="Members of this role that must be bound together with the rest of the group. Defaults to 0.",
    )
    max_member: Count | None = Field(
        default=None, description="Members of this role beyond this number are not scheduled. Defaults to no limit."
    )
    template: MemberTemplate | None = Field(
        default=None,
        description="Shape of members that do not exist yet: with it, places are planned and reserved as soon as the "
        "group's first member exists. Defaults to none: only existing members are planned.",
    )


class Topology(PodGroupPart):
    """Keeps all members in one domain of a node label."""

    key: NodeLabelKey = Field(description="Node label whose values are the domains.")
    mode: Literal["Required", "Preferred"] = Field(
        default="Required",
        description="Required (the default): all members are bound in one domain, or none is. Preferred: one domain if "
        "the group fits into one, otherwise as few as possible.",
    )


class Preference(PodGroupPart):
    """Prefers nodes by a label."""

    rules: ClassVar = (
        Rule(
            "has(self.order) != has(self.values)",
            "a preference needs exactly one of order and values: set one and remove the other",
            lambda preference: (preference.order is None) != (preference.values is None),
        ),
    )

    key: NodeLabelKey = Field(description="Node label to prefer by.")
    order: Literal["Ascending", "Descending"] | None = Field(
        default=None,
        description="Ascending prefers the lowest value of the label, Descending the highest. Not with `values`.",
    )
    values: list[LabelValue] | None = Field(
        default=None,
        min_length=1,
        max_length=256,
        description="Values of the label, the most preferred first. Not with `order`.",
    )


class Placement(PodGroupPart):
    """Where the members go, among the nodes that accept them."""

    strategy: Strategy = Field(
        default="Pack",
        description="Pack (the default) fills the fullest accepted node first; Spread gives each node one member in "
        "turn; the documentation describes MinimalFragmentation, BestFit and MostUsed. A name with a slash is that of "
        "a plug-in; if it is not installed, the group waits with reason StrategyUnknown.",
    )
    topology: Topology | None = Field(
        default=None, description="Keeps all members in one domain of a node label. Defaults to no constraint."
    )
    prefer: list[Preference] = Field(
        default_factory=list,
        max_length=16,
        description="Preferences among nodes by their labels, the most important first. Defaults to none.",
    )


class PodGroupSpec(PodGroupPart):
    """The requirements of the group and its scheduling policy."""

    rules: ClassVar = (
        Rule(
            "!has(self.maxMember) || self.maxMember >= self.minMember",
            "spec.maxMember must be at least spec.minMember: raise maxMember or lower minMember",
            lambda spec: spec.max_member is None or spec.max_member >= spec.min_member,
        ),
        Rule(
            "!has(self.maxMember) || !has(self.roles) || self.roles.map(r, r.minMember).sum() <= self.maxMember",
            "the minMember of all spec.roles together must not exceed spec.maxMember: raise maxMember or lower a "
            "role's minMember",
            lambda spec: spec.max_member is None or sum(role.min_member for role in spec.roles) <= spec.max_member,
        ),
        Rule(
            "!has(self.priority) || !has(self.priorityClassName)",
            "spec.priority and spec.priorityClassName are mutually exclusive: remove one of them",
            lambda spec: spec.priority is None or spec.priority_class_name is None,
        ),
    )

    min_member: Annotated[Int32, Field(ge=1)] = Field(
        description="Members that must be bound together; fewer are never bound. The group's minimum is this number "
        "or the sum of the roles' minMember, whichever is larger. It may change at any time."
    )
    max_member: Annotated[Int32, Field(ge=1)] | None = Field(
        default=None,
        description="Members beyond this number are not scheduled; bound members count first. Defaults to no limit.",
    )
    max_schedule_time: Duration | None = Field(
        default=None,
        description="How long a complete group may wait, or hold a reservation, before it times out: hours, minutes "
        "and seconds such as 90s, 5m or 1h30m, from 1s to 168h (7 days). Defaults to the operator's "
        "defaultMaxScheduleTime, which is 60s unless configured.",
    )
    timeout_policy: Annotated[TimeoutPolicy, Strict(strict=False)] = Field(
        default=TimeoutPolicy.RETRY,
        description="Action after a time-out. Retry (the default): a back-off of 10s that doubles up to 5m, then "
        "another attempt. Fail: the group ends as Failed until its spec changes or all its members are gone.",
    )
    priority: Annotated[Int32, Field(le=1_000_000_000)] | None = Field(
        default=None,
        description="Order among waiting groups, higher first, at most 1000000000. Not with priorityClassName. "
        "Defaults to the highest priority of the members.",
    )
    priority_class_name: Annotated[str, Field(min_length=1, max_length=253)] | None = Field(
        default=None,
        description="Name of a PriorityClass whose value is the group's priority. Not with priority.",
    )
    preemption_policy: Literal["PreemptLowerPriority", "Never"] | None = Field(
        default=None,
        description="Never: no pod is evicted for this group, even if its PriorityClass allows preemption. "
        "PreemptLowerPriority, the default: its PriorityClass says whether groups and pods of lower priority are; a "
        "group with a priority that is a bare number preempts nobody.",
    )
    expected_run_time: Duration | None = Field(
        default=None,
        description="How long the group runs once its minimum is bound: hours, minutes and seconds such as 90s, 5m or "
        "1h30m, from 1s to 168h (7 days). Groups that wait are told by it when they will probably start. Defaults to "
        "the pods' annotation gangsched.io/expected-runtime; without both only limits such as activeDeadlineSeconds "
        "tell when it ends.",
    )
    roles: Annotated[list[Role], Field(max_length=64), ListMap("name")] = Field(
        default_factory=list, description="Named parts of the group with their own minima. Defaults to none."
    )
    placement: Placement | None = Field(
        default=None, description="Where the members go. Defaults to strategy Pack without preferences."
    )
    ttl_after_finished: Duration | None = Field(
        default=None,
        description="How long after it has Succeeded or Failed the PodGroup is deleted, unless a pod that names it "
        "lives: hours, minutes and seconds such as 90s, 5m or 1h30m, from 1s to 168h (7 days). It has an effect only "
        "if the operator's setting podGroups.deleteFinished is true, and none with the annotation gangsched.io/keep of "
        "the value true. Defaults to the operator's podGroups.ttlAfterFinished; without that the PodGroup stays.",
    )
    on_degraded: Annotated[OnDegraded, Strict(strict=False)] = Field(
        default=OnDegraded.REPAIR,
        description="Action when a scheduled group falls below its minimum. Repair (the default): replacements are "
        "bound before everything else that waits. Restart: all its members are evicted and start again together. "
        "Ignore: only the condition Degraded is set.",
    )
