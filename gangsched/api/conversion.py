"""Converts a PodGroup object from the API server or a manifest to `core.objects.podgroup.Group`.

No content of an object raises an exception. An unreadable object becomes a group with an error, a sentence for a
person, so that its members wait and its owner sees why.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gangsched.api.podgroup_names import GROUP, KIND, VERSION
from gangsched.api.podgroup_spec import NAME_RULE, Placement, PodGroupSpec, Preference, Topology
from gangsched.api.podgroup_spec import Role as WantedRole
from gangsched.api.status_conversion import status_from_object
from gangsched.api.template_shapes import shape_from_template, soft_from_template, template_to_object
from gangsched.api.times import parse_if_set
from gangsched.core.objects import declaration
from gangsched.core.objects.declaration import GroupKey, Role
from gangsched.core.objects.duration import LONGEST_S, SHORTEST_S, format_duration, parse_duration
from gangsched.core.objects.podgroup import Group, GroupSpec
from gangsched.core.objects.policy import DEFAULT_NAME
from gangsched.core.objects.workload import Reference

MADE_LABEL, MADE_BY = "gangsched.io/created-by", "gangsched"
"""Marks a PodGroup that the operator has created."""
SCHEDULER = "gangsched.io/scheduler"
"""The annotation that names the schedulerName of a PodGroup whose pods do not, such as one without pods."""
KEEP = "gangsched.io/keep"
"""The annotation that keeps a finished PodGroup from being deleted if its value is `true`."""
_SHOWN_ERRORS = 3


def group_from_object(body: Mapping[str, object]) -> Group:
    """Return the group that the object describes. An unreadable object has a `Group.error`."""
    metadata = _mapping(body.get("metadata"))
    name = _text(metadata.get("name"))
    spec, error = _spec(body.get("spec"), name)
    generation = metadata.get("generation")
    return Group(
        key=GroupKey(_text(metadata.get("namespace")), name),
        uid=_text(metadata.get("uid")),
        resource_version=_text(metadata.get("resourceVersion")),
        generation=generation if isinstance(generation, int) else 0,
        # A manifest that was never applied counts as older than all others.
        created=parse_if_set(_text(metadata.get("creationTimestamp"))),
        spec=spec,
        status=status_from_object(_mapping(body.get("status"))),
        error=error,
        made=_mapping(metadata.get("labels")).get(MADE_LABEL) == MADE_BY,
        scheduler=_text(_mapping(metadata.get("annotations")).get(SCHEDULER)),
        owner=_owner(metadata.get("ownerReferences")),
    )


def made_group(key: GroupKey, spec: GroupSpec, owner: Reference, *, scheduler: str = "") -> dict[str, Any]:
    """The PodGroup to create for a group that the object `owner` declares. That object owns the PodGroup.

    An annotation records the schedulerName of its pods unless it is the default one.
    """
    body: dict[str, Any] = {"minMember": spec.min_member}
    if spec.max_member is not None:
        body["maxMember"] = spec.max_member
    if spec.max_schedule_time_s is not None:
        # Other systems know times that a PodGroup may not have, such as none at all.
        time_s = round(min(LONGEST_S, max(SHORTEST_S, spec.max_schedule_time_s)))
        body["maxScheduleTime"] = format_duration(time_s)
    if spec.roles:
        body["roles"] = [_role_to_object(role) for role in spec.roles]
    reference = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {MADE_LABEL: MADE_BY},
            "ownerReferences": [reference],
            **({"annotations": {SCHEDULER: scheduler}} if scheduler not in ("", DEFAULT_NAME) else {}),
        },
        "spec": body,
    }


def _role_to_object(role: Role) -> dict[str, Any]:
    body: dict[str, Any] = {"name": role.name, "minMember": role.min_member}
    if role.max_member is not None:
        body["maxMember"] = role.max_member
    if role.template is not None:
        body["template"] = template_to_object(role.template, role.soft)
    return body


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _owner(references: object) -> str:
    """The UID of the object that owns this one, its controller first; empty if none does."""
    owners = [*map(_mapping, references)] if isinstance(references, list) else []
    owners.sort(key=lambda owner: owner.get("controller") is not True)
    return _text(owners[0].get("uid")) if owners else ""


def _spec(value: object, name: str) -> tuple[GroupSpec | None, str]:
    if not name:
        return None, "metadata.name is required: give the PodGroup a name"
    if not NAME_RULE.holds(name):
        return None, NAME_RULE.message
    if not isinstance(value, Mapping):
        return None, "spec is required: set at least spec.minMember"
    try:
        spec = PodGroupSpec.model_validate(dict(value))
    except ValidationError as error:
        return None, _sentence(error)
    return _spec_from_object(spec), ""


def _spec_from_object(spec: PodGroupSpec) -> GroupSpec:
    placement = spec.placement or Placement()
    return GroupSpec(
        min_member=spec.min_member,
        max_member=spec.max_member,
        max_schedule_time_s=None if spec.max_schedule_time is None else parse_duration(spec.max_schedule_time),
        timeout_policy=spec.timeout_policy,
        priority=spec.priority,
        priority_class=spec.priority_class_name or "",
        roles=tuple(map(_role, spec.roles)),
        strategy=placement.strategy,
        prefer=tuple(map(_preference, placement.prefer)),
        topology=_topology(placement.topology) if placement.topology is not None else None,
        on_degraded=spec.on_degraded,
        preempts=spec.preemption_policy != "Never",
        expected_s=None if spec.expected_run_time is None else parse_duration(spec.expected_run_time),
    )


def _role(role: WantedRole) -> Role:
    if role.template is None:
        return Role(role.name, role.min_member, role.max_member)
    template, soft = shape_from_template(role.template), soft_from_template(role.template)
    return Role(role.name, role.min_member, role.max_member, template, soft=soft)


def _topology(topology: Topology) -> declaration.Topology:
    return declaration.Topology(topology.key, required=topology.mode == "Required")


def _preference(preference: Preference) -> declaration.Preference:
    return declaration.Preference(preference.key, preference.order or "", tuple(preference.values or ()))


def _sentence(error: ValidationError) -> str:
    """The first few faults of the spec, in the order of the fields."""
    faults = error.errors(include_url=False)
    sentence = "; ".join(map(_fault, faults[:_SHOWN_ERRORS]))
    return f"{sentence}; and {len(faults) - _SHOWN_ERRORS} more" if len(faults) > _SHOWN_ERRORS else sentence


def _fault(fault: ErrorDetails) -> str:
    path = "spec" + "".join(map(_step, fault["loc"]))
    if fault["type"] == "missing":
        return f"{path} is required: set it"
    if fault["type"] == "extra_forbidden":
        return f"{path} is not a field that this version of gangsched knows: remove it, or upgrade the operator"
    message = re.sub(r"^\w+ should ", "must ", fault["msg"]).replace(" after validation", "")
    if message.startswith("must "):
        return f"{path} {message}"
    return message if not fault["loc"] else f"{path}: {message}"


def _step(part: int | str) -> str:
    return f".{part}" if isinstance(part, str) and part.isidentifier() else f"[{part}]"
