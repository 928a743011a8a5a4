"""Volcano: an annotation that names its PodGroup, whose tasks are roles.

Its own controllers put a task name on every pod, even if no task has a minimum, so a role that the PodGroup does not
list is ignored. A hard network topology and subgroups are not supported and are refused by name.

Volcano lets no member of a group run before the group's minResources are free (its plug-in overcommit, without that
plug-in's factor). Some controllers, such as Spark's, declare the size of a gang there, with a minMember of 1, because
they create the other members later.

Some controllers create no pods before the PodGroup has a phase, which gangsched writes if its settings say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Raw, Struct, field

from gangsched.config.dialects import DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.core.objects.podgroup import GroupSpec, SeenPhase
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.dialect_fields import honoured, needless, refused, told
from gangsched.kube.dialects.dialect_kind import Kind, Resources, resources, roles, total

MANAGER = "gangsched"
"""The name of our field manager."""


class _NetworkTopology(Struct, gc=False):
    mode: str | None = None


class _VolcanoSpec(Struct, gc=False, rename="camel"):
    min_member: int = 0
    min_task_member: dict[str, int] | None = None
    priority_class_name: str | None = None
    min_resources: Resources | None = None
    network_topology: _NetworkTopology | None = None
    sub_group_policy: list[wire.Present] | None = None


_QUEUE = "queues, their quota and their node groups are not enforced"
_BOTH = (
    told(Key("volcano.sh/sla-waiting-time"), "a group that waits longer gets no precedence"),
    told(Key("volcano.sh/numa-topology-policy"), "NUMA topology is not considered; the kubelet's own policy decides"),
    told(Key("volcano.sh/revocable-zone"), "such nodes are used like any others"),
    *(
        told(Key(f"volcano.sh/task-topology-{suffix}"), "tasks are not placed near to or apart from each other")
        for suffix in ("affinity", "anti-affinity", "task-order")
    ),
    *(
        told(
            Key(f"volcano.sh/{name}"), "priorities decide who is preempted; PodDisruptionBudgets limit it", usual=usual
        )
        for name, usual in (
            ("preemptable", ("true",)),
            ("cooldown-time", ()),
            ("jdb-min-available", ()),
            ("jdb-max-unavailable", ()),
        )
    ),
)
"""Annotations of pods and of PodGroups; Volcano's controllers copy them from one to the other."""
_TEXTS = (
    told(Key("scheduling.volcano.sh/queue-name"), _QUEUE, usual=("default",)),
    told(
        Key("scheduling.volcano.sh/group-min-resources"),
        "read only as `minResources` of the PodGroup that Volcano's controllers make from it",
    ),
    *_BOTH,
)
_FIELDS = (
    honoured("minMember", "the minimum"),
    honoured("minTaskMember", "each task is a role, whose minimum always counts"),
    honoured("minResources", "must be free in all before the first member is bound"),
    honoured("priorityClassName", "the order of groups"),
    refused("networkTopology", "of mode hard, which is the default"),
    refused("networkTopology.mode", "hard; with soft the whole field is not honoured, which is told"),
    needless("networkTopology.highestTierAllowed", "part of a field that is not honoured"),
    needless("networkTopology.highestTierName", "part of a field that is not honoured"),
    refused("subGroupPolicy", "always: use tasks with `minTaskMember`"),
    told("queue", _QUEUE, usual=("default",)),
    *_BOTH,
)


def _terms(spec: _VolcanoSpec, _: wire.Meta) -> GroupSpec:
    tasks = roles("spec.minTaskMember", spec.min_task_member or {})
    return GroupSpec(
        min_member=total(spec.min_member, tasks),
        roles=tasks,
        priority_class=spec.priority_class_name or "",
        min_resources=resources(spec.min_resources),
        not_built=tuple(_refused(spec)),
    )


def _refused(spec: _VolcanoSpec) -> Iterator[str]:
    # In Volcano a topology without a mode is a hard one.
    if spec.network_topology is not None and spec.network_topology.mode in (None, "", "hard"):
        yield "spec.networkTopology of mode hard"
    if spec.sub_group_policy:
        yield "spec.subGroupPolicy"


def _also_ignored(spec: _VolcanoSpec, _: wire.Meta) -> Iterator[str]:
    """A preference is no reason to refuse the group."""
    if spec.network_topology is not None and spec.network_topology.mode not in (None, "", "hard"):
        yield "spec.networkTopology"


class _VolcanoStatus(Struct, gc=False):
    phase: str | None = None


class _Fields(Struct, gc=False):
    phase: wire.Present | None = field(default=None, name="f:phase")


class _Owned(Struct, gc=False):
    status: _Fields | None = field(default=None, name="f:status")


class _Entry(Struct, gc=False):
    manager: str = ""
    operation: str = ""
    fields: _Owned | None = field(default=None, name="fieldsV1")

    @property
    def has_phase(self) -> bool:
        """Whether this manager has written the phase."""
        return self.fields is not None and self.fields.status is not None and self.fields.status.phase is not None

    @property
    def ours(self) -> bool:
        """Whether the manager is gangsched."""
        return (self.manager, self.operation) == (MANAGER, "Apply")


class _VolcanoMetadata(Struct, gc=False):
    managed_fields: Sequence[_Entry] | None = field(default=None, name="managedFields")


class _Phased(Struct, gc=False):
    metadata: _VolcanoMetadata
    status: _VolcanoStatus | None = None


_PHASED = msgspec.json.Decoder(_Phased)


def _phase(raw: Raw | bytes, _: str) -> SeenPhase | None:
    """The phase of the object and whether gangsched alone has written it; None if that cannot be read."""
    try:
        group = _PHASED.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    owners = [entry for entry in group.metadata.managed_fields or () if entry.has_phase]
    text = group.status.phase or "" if group.status is not None else ""
    return SeenPhase(text, ours=bool(owners) and all(entry.ours for entry in owners))


def dialect(row: DialectRow, settings: Settings) -> Dialect:
    kind = Kind(
        resource=row.resources[0],
        spec=_VolcanoSpec,
        terms=_terms,
        fields=_FIELDS,
        also_ignored=_also_ignored,
        phase=_phase,
        phase_in=frozenset(settings.volcano.write_phase),
    )
    return Dialect(row=row, kind=kind, texts=_TEXTS, open_roles=True)
