"""Settings of the dialects of Spark schedulers: the placement and the order of applications."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gangsched.config.part import SettingsPart
from gangsched.core.objects.duration import LONGEST_S
from gangsched.core.objects.policy import FifoRules

AgeS = Annotated[int, Field(ge=0, le=LONGEST_S)]
Label = Annotated[str, Field(min_length=1, max_length=317)]


class PrioritizedNodeLabel(SettingsPart):
    """A preference among nodes by the value of a label."""

    label_name: Label = Field(description="Key of the node label.")
    label_values_descending_priority: Annotated[tuple[str, ...], Field(min_length=1, max_length=256, strict=False)] = (
        Field(description="Values of the label, the most preferred first; nodes with none of them come last.")
    )


class Spark(SettingsPart):
    """Settings of palantir's k8s-spark-scheduler, with the names from its README in camel case."""

    binpack: Literal[
        "distribute-evenly",
        "tightly-pack",
        "az-aware-tightly-pack",
        "single-az-tightly-pack",
        "single-az-minimal-fragmentation",
    ] = Field(
        default="distribute-evenly",
        description="Placement of the members of an application. `distribute-evenly`: on as many nodes as possible, in "
        "turn (strategy Spread). `tightly-pack`: fill one node after another, the fullest first (Pack). "
        "`az-aware-tightly-pack`: the same, inside one zone if the application fits into one. "
        "`single-az-tightly-pack`: the same, inside one zone or not at all. `single-az-minimal-fragmentation`: on few "
        "nodes of one zone, if possible on one, or not at all (MinimalFragmentation). A zone is a value of the node "
        "label topology.kubernetes.io/zone.",
    )
    driver_prioritized_node_label: PrioritizedNodeLabel | None = Field(
        default=None, description="Nodes that drivers prefer. Without it they prefer none."
    )
    executor_prioritized_node_label: PrioritizedNodeLabel | None = Field(
        default=None, description="Nodes that executors prefer. Without it they prefer none."
    )


class Fifo(SettingsPart):
    """Strict FIFO: in an instance group no group overtakes an earlier one that waits for room."""

    instance_group_label: Label = Field(
        default="resource_channel",
        description="Node label whose value, in a pod's required node affinity or nodeSelector, is the pod's instance "
        "group. A pod that requires no value, or several, does not wait for others.",
    )
    spark_drivers: bool = Field(
        default=True,
        description="Whether Spark applications (dialect `palantir`) of one instance group are bound in the order in "
        "which their drivers were created. If false, a small application may overtake a large one.",
    )
    pod_groups: Annotated[tuple[str, ...], Field(max_length=1024, strict=False)] = Field(
        default=(),
        description="Instance groups in which all other groups wait in strict order too. More: more room stays free "
        "for large groups, and small groups wait longer behind them.",
    )
    enforce_after_pod_age_seconds: AgeS = Field(
        default=0,
        description="Age, in seconds, from which on no group may overtake a waiting one. Larger: other groups may "
        "overtake it for longer.",
    )
    enforce_after_pod_age_seconds_by_instance_group: dict[str, AgeS] = Field(
        default_factory=dict, description="The same for single instance groups; overrides the general value."
    )

    def rules(self) -> FifoRules:
        """The rules in the form that the core uses."""
        return FifoRules(
            label=self.instance_group_label,
            groups=frozenset(self.pod_groups),
            after_s=float(self.enforce_after_pod_age_seconds),
            after_s_by_group={
                name: float(seconds) for name, seconds in self.enforce_after_pod_age_seconds_by_instance_group.items()
            },
        )
