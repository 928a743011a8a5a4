"""Settings of single dialects: pfnet, Spark's two, volcano and native."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from gangsched.config.part import Namespace, SettingsPart, unique
from gangsched.core.objects.duration import LONGEST_S
from gangsched.core.objects.policy import FifoRules

_PREFIX = re.compile(r"([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
Seconds = Annotated[int, Field(ge=1, le=LONGEST_S)]
AgeS = Annotated[int, Field(ge=0, le=LONGEST_S)]
Label = Annotated[str, Field(min_length=1, max_length=317)]


def _prefix(text: str) -> str:
    if not _PREFIX.fullmatch(text):
        message = "{prefix} is not a valid annotation prefix: write DOMAIN/NAME, such as example.com/gang"
        raise PydanticCustomError("prefix", message, {"prefix": repr(text)})
    return text


class Pfnet(SettingsPart):
    """Arguments of pfnet's gang plug-in, with the names from its README."""

    gang_annotation_prefix: Annotated[
        str,
        Field(max_length=253, json_schema_extra={"pattern": f"^{_PREFIX.pattern}$"}),
        AfterValidator(_prefix),
    ] = Field(
        default="gang-scheduling.preferred.jp/gang",
        description="Prefix of the pod annotations `-name`, `-size` and `-schedule-timeout-seconds`. Pods with another "
        "prefix name no group and are scheduled one by one.",
    )
    gang_schedule_timeout_seconds_limit: Seconds = Field(
        default=100,
        description="Longest time-out, in seconds, that a pod may request; a longer one is reduced to this. Larger: a "
        "group may wait longer before it backs off.",
    )
    gang_schedule_default_timeout_seconds: Seconds = Field(
        default=30,
        description="Time-out, in seconds, of gangs whose pods request none or a text that is not a number. It must "
        "not exceed the limit. Smaller: waiting groups time out and back off sooner.",
    )
    gang_schedule_timeout_jitter_seconds: Annotated[int, Field(ge=0, le=LONGEST_S)] = Field(
        default=30,
        description="Random jitter, in seconds, added to each time-out; 0 for none. Larger: groups that began to wait "
        "together time out further apart.",
    )

    @model_validator(mode="after")
    def _within_limit(self) -> Self:
        if self.gang_schedule_default_timeout_seconds > self.gang_schedule_timeout_seconds_limit:
            message = (
                "gangScheduleDefaultTimeoutSeconds must not be above gangScheduleTimeoutSecondsLimit: lower the "
                "default or raise the limit"
            )
            raise PydanticCustomError("order", message)
        return self


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


class SchedulerLease(SettingsPart):
    """The Lease of Volcano's scheduler. While it is held, gangsched writes no phase."""

    name: Annotated[str, Field(min_length=1, max_length=253)] = Field(
        default="volcano", description="Name of the Lease, as its `--leader-elect-resource-name` says."
    )
    namespace: Namespace = Field(
        default="volcano-system",
        description="Namespace of the Lease, as its `--leader-elect-resource-namespace` says: the one that Volcano is "
        "installed in.",
    )


class Volcano(SettingsPart):
    """Settings of the dialect volcano."""

    write_phase: Annotated[
        tuple[Namespace, ...],
        Field(max_length=1024, strict=False, json_schema_extra={"uniqueItems": True}),
        AfterValidator(unique),
    ] = Field(
        default=(),
        description="Namespaces in which gangsched writes the field status.phase of Volcano's PodGroups "
        "(docs/dialects.md), for controllers that create no pods before it is Inqueue. Empty: in none. It never "
        "overwrites a phase that another client wrote, and writes none while Volcano's scheduler leads. The chart "
        "grants the right in these namespaces, which must exist.",
    )
    scheduler_lease: SchedulerLease = Field(
        default_factory=SchedulerLease,
        description="Lease of Volcano's scheduler. It has one only with leader election, which Volcano's chart turns "
        "off by default.",
    )


class Native(SettingsPart):
    """Settings of the dialect native."""

    write_condition: bool = Field(
        default=True,
        description="Whether gangsched writes the condition that says whether a PodGroup of scheduling.k8s.io was "
        "scheduled (PodGroupInitiallyScheduled, in Kubernetes 1.36 PodGroupScheduled), as kube-scheduler does for its "
        "own groups. It never writes to a group of which another scheduler has pods. The chart grants the right if the "
        "dialect native is in its value `dialects`. false: the PodGroups are only read.",
    )
