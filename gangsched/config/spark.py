"""What the dialects of Spark's schedulers need to be told: where applications go, and in which order."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gangsched.config.part import Part
from gangsched.core.objects.duration import LONGEST_S
from gangsched.core.objects.policy import TurnRules

AgeS = Annotated[int, Field(ge=0, le=LONGEST_S)]
Label = Annotated[str, Field(min_length=1, max_length=317)]


class PrioritizedNodeLabel(Part):
    """Nodes to be preferred, by the value of one of their labels."""

    label_name: Label = Field(description="Key of the node label.")
    label_values_descending_priority: Annotated[tuple[str, ...], Field(min_length=1, max_length=256, strict=False)] = (
        Field(description="Its values, the most preferred first; nodes with none of them come last.")
    )


class Spark(Part):
    """Settings of palantir's k8s-spark-scheduler, by the names that its README gives them, in camel case."""

    binpack: Literal[
        "distribute-evenly",
        "tightly-pack",
        "az-aware-tightly-pack",
        "single-az-tightly-pack",
        "single-az-minimal-fragmentation",
    ] = Field(
        default="distribute-evenly",
        description="Where the members of an application go. `distribute-evenly`: to as many nodes as possible, one "
        "after the other (strategy Spread). `tightly-pack`: to one node after the other, the fullest first (Pack). "
        "`az-aware-tightly-pack`: the same, inside one zone if the application fits into one. "
        "`single-az-tightly-pack`: the same, inside one zone or not at all. `single-az-minimal-fragmentation`: to few "
        "nodes of one zone, if possible to one, or not at all (MinimalFragmentation). A zone is a value of the node "
        "label topology.kubernetes.io/zone.",
    )
    driver_prioritized_node_label: PrioritizedNodeLabel | None = Field(
        default=None, description="Nodes that drivers prefer. Without it they prefer none."
    )
    executor_prioritized_node_label: PrioritizedNodeLabel | None = Field(
        default=None, description="Nodes that executors prefer. Without it they prefer none."
    )


class Fifo(Part):
    """Strict FIFO: in an instance group nobody overtakes an earlier group that waits for room."""

    instance_group_label: Label = Field(
        default="resource_channel",
        description="Node label whose value, in a pod's required node affinity or its nodeSelector, is its instance "
        "group. A pod that asks for none, or for several, waits for nobody.",
    )
    spark_drivers: bool = Field(
        default=True,
        description="Whether Spark applications (dialect `palantir`) of one instance group are bound in the order in "
        "which their drivers were created. Without it a small application may overtake a large one.",
    )
    pod_groups: Annotated[tuple[str, ...], Field(max_length=1024, strict=False)] = Field(
        default=(),
        description="Instance groups in which all other groups wait strictly in their order too. The more, the more "
        "room stays free for a large group, and the longer small ones wait behind it.",
    )
    enforce_after_pod_age_seconds: AgeS = Field(
        default=0,
        description="Age, in seconds, from which on a group that waits may not be overtaken. Larger: it is overtaken "
        "for so long.",
    )
    enforce_after_pod_age_seconds_by_instance_group: dict[str, AgeS] = Field(
        default_factory=dict, description="The same for single instance groups, which it overrides."
    )

    def rules(self) -> TurnRules:
        """What the core decides by."""
        return TurnRules(
            label=self.instance_group_label,
            groups=frozenset(self.pod_groups),
            after_s=float(self.enforce_after_pod_age_seconds),
            after_s_by_group={
                name: float(seconds) for name, seconds in self.enforce_after_pod_age_seconds_by_instance_group.items()
            },
        )
