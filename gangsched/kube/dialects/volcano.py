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

from gangsched.config.dialects import Row
from gangsched.config.settings import Settings
from gangsched.core.objects.podgroup import GroupSpec, SeenPhase
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.kind import Kind, Resources, resources, roles, total

MANAGER = "gangsched"
"""The name of our field manager."""


class _NetworkTopology(Struct, gc=False):
    mode: str | None = None


class _Spec(Struct, gc=False, rename="camel"):
    min_member: int = 0
    min_task_member: dict[str, int] | None = None
    priority_class_name: str | None = None
    min_resources: Resources | None = None
    network_topology: _NetworkTopology | None = None
    sub_group_policy: list[wire.Present] | None = None


def _terms(spec: _Spec, _: wire.Meta) -> GroupSpec:
    tasks = roles("spec.minTaskMember", spec.min_task_member or {})
    return GroupSpec(
        min_member=total(spec.min_member, tasks),
        roles=tasks,
        priority_class=spec.priority_class_name or "",
        min_resources=resources(spec.min_resources),
        not_built=tuple(_refused(spec)),
    )


def _refused(spec: _Spec) -> Iterator[str]:
    # In Volcano a topology without a mode is a hard one.
    if spec.network_topology is not None and spec.network_topology.mode in (None, "", "hard"):
        yield "spec.networkTopology of mode hard"
    if spec.sub_group_policy:
        yield "spec.subGroupPolicy"


class _Status(Struct, gc=False):
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


class _Meta(Struct, gc=False):
    managed_fields: Sequence[_Entry] | None = field(default=None, name="managedFields")


class _Phased(Struct, gc=False):
    metadata: _Meta
    status: _Status | None = None


_PHASED = msgspec.json.Decoder(_Phased)


def _phase(raw: Raw | bytes) -> SeenPhase | None:
    """The phase of the object and whether gangsched alone has written it; None if that cannot be read."""
    try:
        found = _PHASED.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    owners = [entry for entry in found.metadata.managed_fields or () if entry.has_phase]
    text = found.status.phase or "" if found.status is not None else ""
    return SeenPhase(text, ours=bool(owners) and all(entry.ours for entry in owners))


def dialect(row: Row, settings: Settings) -> Dialect:
    kind = Kind(
        resource=row.resources[0],
        spec=_Spec,
        terms=_terms,
        phase=_phase,
        phase_in=frozenset(settings.volcano.write_phase),
    )
    return Dialect(row=row, kind=kind, open_roles=True)
