"""The operator's settings: the content of the file of `gangsched run --config`.

Every field states its unit, its default and the effect of a change. The reference in docs/ is generated from these
descriptions. An unknown key is an error, so that a misspelt setting does not silently keep its default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

import yaml
from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from gangsched.config.contention_settings import Aging, Preemption, Reservation
from gangsched.config.custom_workloads import Workloads
from gangsched.config.dialect_settings import Fifo, Native, Pfnet, Spark, Volcano
from gangsched.config.dialects import NAMES, DialectName
from gangsched.config.invalid_config import InvalidConfig
from gangsched.config.limits import NamespaceLimits
from gangsched.config.page import Page
from gangsched.config.part import Duration, NamespaceOrNone, SettingsPart, part_of, unique
from gangsched.config.plugins import InvalidPlugin, installed_strategies
from gangsched.config.pod_groups import PodGroups
from gangsched.config.yaml_documents import Unfollowable, document
from gangsched.core.objects.duration import parse_duration
from gangsched.core.objects.policy import OwnerGuard, Policy, PriorityFrom
from gangsched.core.objects.strategy import BUILT_IN


def _address(text: str) -> str:
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]*):([0-9]{1,5})", text)
    if match is None or int(match.group(2)) > 65535:  # noqa: PLR2004 - the largest port
        message = "{address} is not an address: write HOST:PORT, such as :8080, 127.0.0.1:0 or [::1]:8080"
        raise PydanticCustomError("address", message, {"address": repr(text)})
    return text


SchedulerName = Annotated[str, Field(min_length=1, max_length=253)]


class Backoff(SettingsPart):
    """The back-off of a group after a time-out: it doubles with each consecutive time-out, from `initial` to `max`."""

    initial: Duration = Field(
        default="10s",
        description="First back-off, as a duration. Shorter: a group that does not fit is planned more often.",
    )
    max: Duration = Field(
        default="5m",
        description="Longest back-off, as a duration, not below `initial`. Longer: less planning for groups that do "
        "not fit. An event that could help a group always ends its back-off.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if parse_duration(self.max) < parse_duration(self.initial):
            message = "max must not be below initial: raise backoff.max or lower backoff.initial"
            raise PydanticCustomError("order", message)
        return self


LATE_WRITE_S = 5.0
"""Longest time, in seconds, from the last moment at which a binding may start until the API server has finished it: 1 s
to send it, 4 s to execute it."""


class LeaderElection(SettingsPart):
    """Leader election: only the holder of a Lease acts. Names and defaults are those of Kubernetes' components."""

    lease_duration: Duration = Field(
        default="15s",
        description="How long a standby waits after the leader's last renewal before it takes over, as a duration. "
        "Shorter: a standby replaces a crashed leader sooner, and a slow API server makes a leader lose its lease "
        "sooner.",
    )
    renew_deadline: Duration = Field(
        default="10s",
        description="How long the leader continues without a renewal, as a duration. Then it stops writing and becomes "
        "a standby. At least 5s below `leaseDuration`, so that its last binding has ended before another replica acts. "
        "Longer: the leader stays leader during longer outages of the API server.",
    )
    retry_period: Duration = Field(
        default="2s",
        description="Interval between two renewals by the leader, and between two checks by a standby, as a duration "
        "below `renewDeadline`. Shorter: a standby replaces a leader that shuts down sooner, at the cost of more "
        "requests.",
    )
    resource_name: Annotated[str, Field(min_length=1, max_length=253)] = Field(
        default="gangsched",
        description="Name of the Lease. Installations that serve different schedulerNames need different Leases; "
        "replicas of one installation need the same.",
    )
    resource_namespace: NamespaceOrNone = Field(
        default="",
        description="Namespace of the Lease; empty for the namespace of gangsched's own pod, or `default` outside of a "
        "pod.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        lease_s, renew_s = parse_duration(self.lease_duration), parse_duration(self.renew_deadline)
        if lease_s < renew_s + LATE_WRITE_S:
            message = (
                "leaseDuration must be at least 5s longer than renewDeadline, because the leader's last binding may "
                "take 5s: raise leaseDuration or lower renewDeadline"
            )
            raise PydanticCustomError("order", message)
        if parse_duration(self.retry_period) >= renew_s:
            message = "retryPeriod must be below renewDeadline: raise renewDeadline or lower retryPeriod"
            raise PydanticCustomError("order", message)
        return self


class Settings(SettingsPart):
    """All settings of an installation."""

    scheduler_names: Annotated[
        tuple[SchedulerName, ...],
        Field(min_length=1, max_length=64, strict=False, json_schema_extra={"uniqueItems": True}),
        AfterValidator(unique),
    ] = Field(
        default=("gangsched",),
        description="Values of spec.schedulerName that gangsched serves; it binds only pods with one of them. If "
        "another scheduler serves the same name, both bind the same pods.",
    )
    namespace: NamespaceOrNone = Field(
        default="",
        description="Namespace whose pods and PodGroups are scheduled; empty for all. In both cases the pods of all "
        "namespaces count towards the use of their nodes.",
    )
    dialects: Annotated[
        tuple[DialectName, ...],
        Field(min_length=1, strict=False, json_schema_extra={"uniqueItems": True}),
        AfterValidator(unique),
    ] = Field(
        default=NAMES,
        description="Systems whose labels, annotations and PodGroups declare a pod's group; docs/dialects.md lists "
        "them and what else each dialect does. The labels of an omitted dialect have no effect, and its pods are "
        "scheduled one by one; this applies to `gangsched` too. The chart's value `dialects` sets this and grants the "
        "necessary rights.",
    )
    workloads: Workloads = Field(
        default_factory=Workloads, description="Workloads whose pods may be gangs without declaring a group."
    )
    pfnet: Pfnet = Field(default_factory=Pfnet, description="Settings of the dialect pfnet.")
    spark: Spark = Field(default_factory=Spark, description="Placement of Spark applications of the dialect palantir.")
    volcano: Volcano = Field(default_factory=Volcano, description="Settings of the dialect volcano.")
    native: Native = Field(default_factory=Native, description="Settings of the dialect native.")
    fifo: Fifo = Field(
        default_factory=Fifo, description="Instance groups, in which no group overtakes an earlier one that waits."
    )
    default_max_schedule_time: Duration = Field(
        default="60s",
        description="maxScheduleTime of groups that do not set it, as a duration from 1s to 168h. Shorter: waiting "
        "groups time out and back off sooner.",
    )
    max_priority: Annotated[int, Field(ge=-(2**31), le=1_000_000_000)] = Field(
        default=1_000_000_000,
        description="Largest effective priority; a larger one of a group or pod is reduced to this for ordering. The "
        "default is the largest priority of a PodGroup or of a PriorityClass of users. Lower it to prevent users from "
        "overtaking others with a large priority.",
    )
    priority_from: Literal["PodGroup", "Members"] = Field(
        default="PodGroup",
        description="How a priority or priorityClassName in a PodGroup is limited. PodGroup: to `maxPriority`. "
        "Members: also to the highest priority of the group's live members, which the API server has admitted and a "
        "ResourceQuota can limit; for clusters whose tenants do not trust each other. In both cases the message of the "
        "group's condition says when the priority is reduced.",
    )
    preemption: Preemption = Field(
        default_factory=Preemption,
        description="What may be evicted so that a group of higher priority gets its places.",
    )
    reservation: Reservation = Field(
        default_factory=Reservation,
        description="For which groups places are reserved for later, so that none starves behind smaller ones.",
    )
    aging: Aging = Field(
        default_factory=Aging, description="How waiting raises a group in the order, as a higher priority would."
    )
    max_hold_time: Duration = Field(
        default="10m",
        description="How long places for members that do not exist yet (roles with templates) are reserved at a time, "
        "as a duration, even if maxScheduleTime is longer. Then the unused places are released (reason HoldLimit), and "
        "reserved again after a back-off at the earliest. Longer: members may arrive later, and their places are "
        "withheld from others for longer. 168h: only maxScheduleTime counts.",
    )
    restart_hold: Duration = Field(
        default="30s",
        description="How long the place of a lost member of a scheduled group stays reserved, as a duration, while its "
        "workload exists and re-creates the member; a group does this for at most 5 minutes per hour. Longer: slow "
        "controllers keep their room through a restart, and it is withheld from others for longer.",
    )
    namespace_limits: NamespaceLimits = Field(default_factory=NamespaceLimits, description="Limits of each namespace.")
    backoff: Backoff = Field(
        default_factory=Backoff, description="Back-off of a group after a time-out, before it is planned again."
    )
    repair_deadline: Duration = Field(
        default="30s",
        description="How long a group may stay partly bound after a binding failed, as a duration, before its bindings "
        "are rolled back. Longer: fewer failures lead to a rollback. Shorter: incomplete groups occupy resources for "
        "less time.",
    )
    pre_bind_timeout: Duration = Field(
        default="10m",
        description="How long the volumes of a group may take to be bound or provisioned for the nodes chosen, as a "
        "duration, before the group is bound; maxScheduleTime does not count meanwhile. After that, the writes for it "
        "are rolled back, and it is planned again after a back-off. Longer: slow storage has more time, and the nodes "
        "are withheld from others for longer.",
    )
    bind_concurrency: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=32,
        description="Maximum number of bindings in flight; above 64, only as many as the API server keeps up with. "
        "More: large groups start faster and the API server has more load; with Kubernetes' defaults it serves 98 "
        "requests of kube-scheduler and gangsched at once and queues the others. Each binding has a connection, so the "
        "process needs 128 open files more than this number. It raises its own limit if it can, and otherwise exits "
        "with status 2.",
    )
    gpu_strategy: Annotated[
        str,
        Field(
            min_length=1,
            max_length=253,
            # Only the operator knows the installed plug-ins; their names contain a slash.
            json_schema_extra={"pattern": f"^({'|'.join(BUILT_IN)})$|/"},
        ),
    ] = Field(
        default="BestFit",
        description="Placement strategy of pods without a group that request a GPU (a resource whose name ends in "
        "/gpu). BestFit takes the node that is left with the fewest free GPUs, MostUsed the node with the most GPUs in "
        "use; Pack, Spread, MinimalFragmentation or the name of an installed plug-in mean the same as in PodGroups.",
    )
    owner_guard: Literal["Flag", "Off"] = Field(
        default="Flag",
        description="Whether an Event tells that pods of several owners name one group (Flag) or not (Off); each role "
        "may have an owner of its own. docs/adr/0014-owners.md says which owners count as one.",
    )
    pod_groups: PodGroups = Field(default_factory=PodGroups, description="The deletion of finished PodGroups.")
    leader_election: LeaderElection = Field(
        default_factory=LeaderElection, description="Leader election between replicas; no effect in a dry run."
    )
    listen: Annotated[str, AfterValidator(_address)] = Field(
        default=":8080",
        description="HOST:PORT of /metrics, /livez and /readyz. An empty host means all addresses of the machine; port "
        "0 means a free port, which is logged.",
    )
    page: Page = Field(default_factory=Page, description="The page that shows groups and nodes.")
    log_format: Literal["text", "json"] = Field(
        default="text", description="Format of the log lines: text for people, json for a log collector."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info",
        description="The least severe log lines that are written; libraries write theirs from warning on.",
    )

    @model_validator(mode="after")
    def _check_volcano(self) -> Self:
        if self.volcano.write_phase and "volcano" not in self.dialects:
            message = (
                "volcano.writePhase needs the dialect volcano: add it to dialects, or leave volcano.writePhase empty"
            )
            raise PydanticCustomError("dialect", message)
        return self

    def policy(self, *, seed: int = 0) -> Policy:
        """Return the settings in the form that the core uses; `seed` varies the jitter of back-offs per installation.

        Raises:
            InvalidConfig: an installed strategy plug-in cannot be used, or `gpuStrategy` names a missing one.
        """
        try:
            strategies = installed_strategies()
        except InvalidPlugin as error:
            raise InvalidConfig(str(error)) from error
        names = (*BUILT_IN, *strategies)
        if self.gpu_strategy not in names:
            raise InvalidConfig(
                f"gpuStrategy: {self.gpu_strategy!r} is not installed: install the plug-in that provides it, or use "
                f"one of {', '.join(names)}"
            )
        return Policy(
            scheduler_names=self.scheduler_names,
            namespace=self.namespace,
            default_max_schedule_time_s=parse_duration(self.default_max_schedule_time),
            max_priority=self.max_priority,
            priority_from=PriorityFrom(self.priority_from),
            max_hold_s=parse_duration(self.max_hold_time),
            restart_hold_s=parse_duration(self.restart_hold),
            namespace_limits=self.namespace_limits.rules(),
            backoff_initial_s=parse_duration(self.backoff.initial),
            backoff_max_s=parse_duration(self.backoff.max),
            repair_deadline_s=parse_duration(self.repair_deadline),
            pre_bind_timeout_s=parse_duration(self.pre_bind_timeout),
            seed=seed,
            strategies=strategies,
            gpu_strategy=self.gpu_strategy,
            fifo=self.fifo.rules(),
            owner_guard=OwnerGuard(self.owner_guard),
            preemption=self.preemption.rules(),
            reservations=self.reservation.rules(),
            aging=self.aging.rules(),
        )

    @property
    def listen_address(self) -> tuple[str, int]:
        """Host and port of `listen`. The host has no IPv6 brackets and is empty for all addresses."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


_FORMS = {"missing": "is missing: write it", "tuple_type": "must be a list", "dict_type": "must be a mapping"}
"""Messages in the terms of the file, in place of those that pydantic phrases in the terms of Python."""


def load(path: Path | None = None, *, flags: Mapping[str, object] | None = None) -> Settings:
    """Return the settings of the file, or the defaults without one; `flags`, with the same keys, override the file.

    Raises:
        InvalidConfig: the file cannot be read, or the file or the flags are invalid.
    """
    values = {} if path is None else _read(path)
    validated(values, str(path))
    return validated({**values, **(flags or {})}, "command line")


def validated(values: Mapping[str, object], origin: str) -> Settings:
    """The settings with these values, by the keys of the file; `origin` names their source in messages.

    Raises:
        InvalidConfig: the values are invalid; the error lists the faults.
    """
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors(include_url=False))
        raise InvalidConfig(f"{origin}: {faults}") from None


def _read(path: Path) -> Mapping[str, object]:
    try:
        content = document(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidConfig(f"{path}: cannot be read ({error.strerror}): name a file that exists") from None
    except Unfollowable as error:
        raise InvalidConfig(f"{path}: is {error}: correct the file") from None
    except (ValueError, yaml.YAMLError) as error:
        raise InvalidConfig(f"{path}: is not YAML: {' '.join(str(error).split())}: correct the file") from None
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InvalidConfig(f"{path}: must be a mapping of settings: write one 'key: value' per line")
    return content


def _fault(fault: ErrorDetails) -> str:
    """The message for one fault, with its key and the remedy."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
    if fault["type"] == "extra_forbidden":
        return f"{path} is not a known key: correct or remove it; known keys are {_keys(fault['loc'][:-1])}"
    if fault["type"] == "model_type":
        return f"{path} must be a mapping with the keys {_keys(fault['loc'])}"
    message = _FORMS.get(fault["type"]) or re.sub(r"^\w+ should ", "must ", fault["msg"])
    if not path:
        return message
    return f"{path} {message}" if message.startswith(("must ", "is ")) else f"{path}: {message}"


def _keys(path: Sequence[str | int]) -> str:
    """The keys of the part at this path; all top-level keys for an empty path."""
    part: type[SettingsPart] = Settings
    for key in (key for key in path if isinstance(key, str)):
        hints = (field.annotation for name, field in part.model_fields.items() if key == (field.alias or name))
        part = part_of(next(hints)) or part
    return ", ".join(sorted(field.alias or name for name, field in part.model_fields.items()))
