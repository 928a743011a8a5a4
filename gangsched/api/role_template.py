"""`roles[].template`: the shape of members that do not exist yet, in the terms of a pod's spec.

Field names, nesting and meaning are those of core/v1, so that a template can be copied from a pod template. It has only
the fields that decide where a pod may run. Every list has a limit that no real pod reaches.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from gangsched.api.schema import Format, Int64, PodGroupPart
from gangsched.core.objects.quantity import InvalidQuantity, whole

QUANTITY = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]+)?$"

LabelKey = Annotated[str, Field(min_length=1, max_length=317)]
"""A label or taint key: at most 63 characters after an optional DNS prefix of at most 253 and a slash."""

LabelValue = Annotated[str, Field(max_length=63)]


def _request(value: object) -> int | str:
    if isinstance(value, int | str):
        try:
            if whole(value) >= 0:
                return value
        except InvalidQuantity:
            pass
    raise PydanticCustomError("quantity", "must be a quantity that is not negative, such as 2, 500m or 16Gi")


Request = Annotated[
    int | str,
    PlainValidator(_request),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "minimum": 0,
            "pattern": QUANTITY,
            "maxLength": 64,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
"""A quantity as in manifests; the only field that accepts both a number and a text."""


class NodeSelectorRequirement(PodGroupPart):
    """One condition on a label or field of a node."""

    key: LabelKey = Field(description="Label key, or field name, that the condition is about.")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"] = Field(
        description="How the node's value relates to `values`: In, NotIn, Exists, DoesNotExist, Gt or Lt."
    )
    values: list[Annotated[str, Field(max_length=253)]] = Field(
        default_factory=list,
        max_length=1000,
        description="Values to compare with: at least one for In and NotIn, none for Exists and DoesNotExist, "
        "one integer for Gt and Lt.",
    )


class NodeSelectorTerm(PodGroupPart):
    """Conditions that must all hold; a term without any matches no node."""

    match_expressions: list[NodeSelectorRequirement] = Field(
        default_factory=list, max_length=100, description="Conditions on the node's labels."
    )
    match_fields: list[NodeSelectorRequirement] = Field(
        default_factory=list, max_length=100, description="Conditions on the node's fields; only metadata.name exists."
    )


class NodeSelector(PodGroupPart):
    """Alternatives; at least one must match the node."""

    node_selector_terms: list[NodeSelectorTerm] = Field(
        min_length=1, max_length=100, description="Alternatives: a node is accepted if any of them matches it."
    )


class PreferredSchedulingTerm(PodGroupPart):
    """A preference for nodes, with its weight."""

    weight: Annotated[int, Field(ge=1, le=100), Format("int32")] = Field(
        description="How much a matching node is preferred, from 1 to 100."
    )
    preference: NodeSelectorTerm = Field(description="Which nodes are preferred.")


class NodeAffinity(PodGroupPart):
    """Rules on the nodes' labels."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = Field(
        default=None, description="Nodes that do not match are refused."
    )
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] = Field(
        default_factory=list, max_length=100, description="Nodes that match are preferred, by the sum of the weights."
    )


class Affinity(PodGroupPart):
    """Rules on where a member may run; only node affinity is supported."""

    node_affinity: NodeAffinity | None = Field(default=None, description="Rules on the nodes' labels.")


class Toleration(PodGroupPart):
    """A taint that the members accept."""

    key: LabelKey | None = Field(
        default=None, description="Taint key to tolerate. Without it, operator Exists tolerates every taint."
    )
    operator: Literal["Exists", "Equal"] = Field(
        default="Equal", description="Exists ignores the taint's value, Equal (the default) compares it with `value`."
    )
    value: LabelValue | None = Field(default=None, description="Taint value to tolerate, with operator Equal.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Taint effect to tolerate. Without it, all effects are tolerated."
    )
    toleration_seconds: Int64 | None = Field(
        default=None,
        description="Seconds for which a bound pod tolerates a NoExecute taint; no effect on placement.",
    )


class MemberTemplate(PodGroupPart):
    """The shape of a role's members that do not exist yet."""

    requests: dict[str, Request] = Field(
        default_factory=dict,
        max_length=64,
        description="Requests of one member, by resource (cpu, memory, nvidia.com/gpu …), as quantities: the effective "
        "request of the whole pod, including its overhead.",
    )
    node_selector: dict[str, LabelValue] = Field(
        default_factory=dict, max_length=64, description="Labels that a node must have, as in a pod's spec."
    )
    affinity: Affinity | None = Field(default=None, description="Node affinity, as in a pod's spec.")
    tolerations: list[Toleration] = Field(
        default_factory=list, max_length=100, description="Taints that the members tolerate, as in a pod's spec."
    )
