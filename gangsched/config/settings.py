"""The operator's settings, as the file of `gangsched run --config` has them.

Every field says its unit, its default and what follows from changing it; the reference in docs/ is made from these
descriptions. A key that is not listed here is an error: a misspelt setting must not silently keep its default.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError

from gangsched.config.dialects import NAMES, DialectName
from gangsched.config.limits import NamespaceLimits
from gangsched.config.part import Part, part_of
from gangsched.config.pfnet import Pfnet
from gangsched.config.plugins import InvalidPlugin, installed_strategies
from gangsched.config.spark import Fifo, Spark
from gangsched.core.objects.duration import PATTERN, parse_duration
from gangsched.core.objects.policy import OwnerGuard, Policy, PriorityFrom
from gangsched.core.planning.strategies import STRATEGIES

Name = TypeVar("Name", bound=str)


class InvalidConfig(ValueError):  # noqa: N818 - what it names is the file, as the person who wrote it sees it
    """The configuration cannot be used; the message says which file, which key and what to do."""


def _duration(value: object) -> object:
    try:
        parse_duration(value if isinstance(value, str) else repr(value))
    except ValueError as error:
        raise PydanticCustomError("duration", "{reason}", {"reason": str(error)}) from None
    return value


def _address(text: str) -> str:
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]*):([0-9]{1,5})", text)
    if match is None or int(match.group(2)) > 65535:  # noqa: PLR2004 - the largest port
        message = "{address} is not an address: write HOST:PORT, such as :8080, 127.0.0.1:0 or [::1]:8080"
        raise PydanticCustomError("address", message, {"address": repr(text)})
    return text


def _unique(names: tuple[Name, ...]) -> tuple[Name, ...]:
    if len(set(names)) < len(names):
        raise PydanticCustomError("unique", "a name occurs more than once: write every name once")
    return names


Duration = Annotated[
    str,
    BeforeValidator(_duration),
    # At least 1 s is any digit but 0. That it is at most 168h no schema can say: the parts add up.
    WithJsonSchema({"type": "string", "allOf": [{"pattern": PATTERN}, {"pattern": "[1-9]"}]}),
]
SchedulerName = Annotated[str, Field(min_length=1, max_length=253)]


class Backoff(Part):
    """The pause of a group after a time-out; it doubles with each time-out in a row, from `initial` to `max`."""

    initial: Duration = Field(
        default="10s",
        description="First pause, as a duration. Shorter: a group that does not fit is planned more often.",
    )
    max: Duration = Field(
        default="5m",
        description="Longest pause, as a duration, not below `initial`. Longer: less planning for groups that do not "
        "fit; an event that could help a group always ends its pause.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if parse_duration(self.max) < parse_duration(self.initial):
            message = "max must not be below initial: raise backoff.max or lower backoff.initial"
            raise PydanticCustomError("order", message)
        return self


LATE_WRITE_S = 5.0
"""From the last moment at which a binding may begin until the API server is done with it: 1 s to send, 4 s to act."""


class LeaderElection(Part):
    """Which of several replicas acts: the holder of a Lease. Names and defaults are those of Kubernetes' components."""

    lease_duration: Duration = Field(
        default="15s",
        description="How long a standby waits after the leader's last renewal before it takes over, as a duration. "
        "Shorter: a crashed leader is replaced sooner, and a slow API server costs the lease sooner.",
    )
    renew_deadline: Duration = Field(
        default="10s",
        description="How long the leader goes on without a renewal, as a duration; then it sends nothing more and "
        "stands by. At least 5s below `leaseDuration`, so that its last binding has ended before another replica acts. "
        "Longer: a longer outage of the API server costs no change of leader.",
    )
    retry_period: Duration = Field(
        default="2s",
        description="Pause between two renewals of the leader, and between two looks of a standby, as a duration "
        "below `renewDeadline`. Shorter: a leader that ends in order is replaced sooner, at the cost of more requests.",
    )
    resource_name: Annotated[str, Field(min_length=1, max_length=253)] = Field(
        default="gangsched",
        description="Name of the Lease. Installations that serve different schedulerNames need different Leases; "
        "replicas of one installation need the same.",
    )
    resource_namespace: Annotated[str, Field(max_length=63)] = Field(
        default="",
        description="Namespace of the Lease; empty for the one of the pod that gangsched runs in, or `default` outside "
        "of a pod.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        lease_s, renew_s = parse_duration(self.lease_duration), parse_duration(self.renew_deadline)
        if lease_s < renew_s + LATE_WRITE_S:
            message = (
                "leaseDuration must be at least 5s longer than renewDeadline, the time that the leader's last binding "
                "may take: raise leaseDuration or lower renewDeadline"
            )
            raise PydanticCustomError("order", message)
        if parse_duration(self.retry_period) >= renew_s:
            message = "retryPeriod must be below renewDeadline: raise renewDeadline or lower retryPeriod"
            raise PydanticCustomError("order", message)
        return self


class Settings(Part):
    """Everything that an installation can choose."""

    scheduler_names: Annotated[
        tuple[SchedulerName, ...],
        Field(min_length=1, max_length=64, strict=False, json_schema_extra={"uniqueItems": True}),
        AfterValidator(_unique),
    ] = Field(
        default=("gangsched",),
        description="Values of a pod's spec.schedulerName that are accepted; only such pods are ever bound. A name "
        "that another scheduler also serves makes both bind the same pods.",
    )
    namespace: Annotated[str, Field(max_length=63)] = Field(
        default="",
        description="Namespace whose pods and PodGroups are scheduled; empty for all. The pods of all namespaces "
        "count against their nodes in either case.",
    )
    dialects: Annotated[
        tuple[DialectName, ...],
        Field(min_length=1, strict=False, json_schema_extra={"uniqueItems": True}),
        AfterValidator(_unique),
    ] = Field(
        default=NAMES,
        description="Whose labels, annotations and PodGroups say a pod's group; docs/dialects.md has them, and what "
        "else comes with each. Those of a dialect that is left out mean nothing, and its pods are scheduled one by "
        "one; that goes for `gangsched` too. The chart's value `dialects` sets this and grants the rights that they "
        "need.",
    )
    pfnet: Pfnet = Field(default_factory=Pfnet, description="What the dialect pfnet needs to be told.")
    spark: Spark = Field(default_factory=Spark, description="Where Spark applications of the dialect palantir go.")
    fifo: Fifo = Field(
        default_factory=Fifo, description="Instance groups, in which nobody overtakes an earlier group that waits."
    )
    default_max_schedule_time: Duration = Field(
        default="60s",
        description="maxScheduleTime of groups that do not set it, as a duration from 1s to 168h. Shorter: waiting "
        "groups time out and pause sooner.",
    )
    max_priority: Annotated[int, Field(ge=-(2**31), le=1_000_000_000)] = Field(
        default=1_000_000_000,
        description="Largest priority that counts; a group or pod with a larger one is ordered as if it had this. "
        "The default is the most that a PodGroup or a PriorityClass of users can have. Lower it where users must not "
        "overtake others by naming a large priority.",
    )
    priority_from: Literal["PodGroup", "Members"] = Field(
        default="PodGroup",
        description="What a priority or priorityClassName in a PodGroup counts for. PodGroup: for what it says, up to "
        "`maxPriority`. Members: at most for the highest priority of the group's live members, which the API server "
        "has admitted and ResourceQuota can guard; for clusters whose tenants do not trust each other. Either way the "
        "message of the group's condition says so when it counts for less.",
    )
    max_hold_time: Duration = Field(
        default="10m",
        description="How long places for members to come (roles with templates) are held at a time, as a duration, "
        "even if maxScheduleTime is longer. Then those that nobody has taken are released (reason HoldLimit), and held "
        "again after a back-off at the earliest. Longer: members may come later, and what is held for them is kept "
        "from others for longer. 168h: maxScheduleTime alone counts.",
    )
    namespace_limits: NamespaceLimits = Field(
        default_factory=NamespaceLimits, description="What one namespace may have."
    )
    backoff: Backoff = Field(
        default_factory=Backoff, description="Pause of a group after a time-out, before it is planned again."
    )
    repair_deadline: Duration = Field(
        default="30s",
        description="How long a group may stay partly bound after a binding failed, as a duration, before its bindings "
        "are undone. Longer: more failures are survived without undoing; shorter: less is held in vain.",
    )
    bind_concurrency: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=32,
        description="Bindings in flight at once; above 64 as many as the API server keeps up with. More: large groups "
        "start faster and the API server works harder; with Kubernetes' defaults it works on 98 requests of "
        "kube-scheduler and gangsched at once, and lets the others wait. Each has a connection, so the process needs "
        "128 open files more than this: it raises its own limit as far as it may, and ends with status 2 where that is "
        "not enough.",
    )
    gpu_strategy: Annotated[
        str,
        Field(
            min_length=1,
            max_length=253,
            # Which plug-ins are installed only the operator knows; their names have a slash.
            json_schema_extra={"pattern": f"^({'|'.join(STRATEGIES)})$|/"},
        ),
    ] = Field(
        default="BestFit",
        description="Placement strategy of pods without a group that request a GPU, that is a resource whose name ends "
        "in /gpu: BestFit leaves the fewest GPUs free on the node it takes, MostUsed takes the node on which most are "
        "in use; Pack, Spread, MinimalFragmentation or an installed plug-in's name as for PodGroups.",
    )
    owner_guard: Literal["Flag", "Refuse", "Off"] = Field(
        default="Flag",
        description="What follows when pods of several owners name one group, other than each role's own: Flag is an "
        "Event on the group; Refuse lets only members of who came first be bound, until they are gone; Off is neither. "
        "docs/adr/0014-owners.md says which owners count as one.",
    )
    leader_election: LeaderElection = Field(
        default_factory=LeaderElection, description="Which of several replicas acts; without effect in a dry run."
    )
    listen: Annotated[str, AfterValidator(_address)] = Field(
        default=":8080",
        description="HOST:PORT of /metrics, /livez and /readyz; an empty host is every address of the machine, port 0 "
        "a free port, which is then logged.",
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Form of the log lines: text for people, json for a log collector."
    )

    def policy(self, *, seed: int = 0) -> Policy:
        """Return what the core decides by; `seed` makes the jitter of back-offs differ between installations.

        Raises:
            InvalidConfig: an installed strategy plug-in cannot be used, or `gpuStrategy` names one that is not there.
        """
        try:
            strategies = installed_strategies()
        except InvalidPlugin as error:
            raise InvalidConfig(str(error)) from error
        known = (*STRATEGIES, *strategies)
        if self.gpu_strategy not in known:
            raise InvalidConfig(
                f"gpuStrategy: {self.gpu_strategy!r} is not installed: install the plug-in that brings it, or name one "
                f"of {', '.join(known)}"
            )
        return Policy(
            scheduler_names=self.scheduler_names,
            namespace=self.namespace,
            default_max_schedule_time_s=parse_duration(self.default_max_schedule_time),
            max_priority=self.max_priority,
            priority_from=PriorityFrom(self.priority_from),
            max_hold_s=parse_duration(self.max_hold_time),
            namespace_limits=self.namespace_limits.rules(),
            backoff_initial_s=parse_duration(self.backoff.initial),
            backoff_max_s=parse_duration(self.backoff.max),
            repair_deadline_s=parse_duration(self.repair_deadline),
            seed=seed,
            strategies=strategies,
            gpu_strategy=self.gpu_strategy,
            turns=self.fifo.rules(),
            owner_guard=OwnerGuard(self.owner_guard),
        )

    @property
    def listen_address(self) -> tuple[str, int]:
        """Host, without the brackets of IPv6 and empty for every address, and port of `listen`."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)


_FORMS = {"missing": "is missing: write it", "tuple_type": "must be a list", "dict_type": "must be a mapping"}
"""What pydantic says in the words of Python, in those of the file."""


def load(path: Path | None = None, *, flags: Mapping[str, object] | None = None) -> Settings:
    """Return the settings of the file (all defaults without one); `flags`, by the same keys, win over the file.

    Raises:
        InvalidConfig: the file cannot be read, or something in it or in the flags is wrong.
    """
    values = {} if path is None else _read(path)
    _checked(values, str(path))
    return _checked({**values, **(flags or {})}, "command line")


def _checked(values: Mapping[str, object], origin: str) -> Settings:
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        faults = "; ".join(_fault(fault) for fault in error.errors(include_url=False))
        raise InvalidConfig(f"{origin}: {faults}") from None


def _read(path: Path) -> Mapping[str, object]:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidConfig(f"{path}: cannot be read ({error.strerror}): name a file that exists") from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidConfig(f"{path}: is not YAML: {' '.join(str(error).split())}: correct the file") from None
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InvalidConfig(f"{path}: must be a mapping of settings: write one 'key: value' a line")
    return content


def _fault(fault: ErrorDetails) -> str:
    """One fault with its key and remedy."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in fault["loc"]).lstrip(".")
    if fault["type"] == "extra_forbidden":
        return f"{path} is not a known key: correct or remove it; known keys are {_keys(fault['loc'][:-1])}"
    if fault["type"] == "model_type":
        return f"{path} must be a mapping with the keys {_keys(fault['loc'])}"
    message = _FORMS.get(fault["type"]) or re.sub(r"^\w+ should ", "must ", fault["msg"])
    return f"{path} {message}" if message.startswith(("must ", "is ")) else f"{path}: {message}"


def _keys(path: Sequence[str | int]) -> str:
    """The keys of the part at this path of keys; those of all settings for an empty one."""
    part: type[Part] = Settings
    for key in path:
        held = (field.annotation for name, field in part.model_fields.items() if key == (field.alias or name))
        part = part_of(next(held)) or part
    return ", ".join(sorted(field.alias or name for name, field in part.model_fields.items()))
