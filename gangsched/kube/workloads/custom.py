"""Kinds that the setting `workloads.custom` describes: where their objects say how many pods they want."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Raw

from gangsched.config.custom_workloads import Custom, Roles
from gangsched.config.dialects import CustomResource
from gangsched.config.workload_registry import WorkloadRow
from gangsched.kube.dialects.dialect import quoted
from gangsched.kube.dialects.dialect_kind import MOST_ROLES
from gangsched.kube.workloads.template import NOTHING
from gangsched.kube.workloads.workload_fields import FieldTree, means
from gangsched.kube.workloads.workload_kind import Desired, Kind, Mark, Marks, Object, controlled

_MOST = 2**31 - 1
_LONGEST_ROLE = 63
"""Longest name of a role, in characters: it is the value of a label."""


class _Custom(Object, gc=False):
    spec: Annotated[Raw, means("the paths that the setting names")] = NOTHING


def kind(setting: Custom) -> Kind[_Custom]:
    """The kind that this setting describes."""
    group, _, version = setting.api_version.partition("/")
    row = WorkloadRow(
        name=setting.name,
        kind=setting.kind,
        resource=CustomResource(group=group, versions=(version,), plural=setting.plural),
        size="the paths that the setting names",
    )
    controllers = None if setting.label else ((group, setting.kind),)
    own, roles = controlled(group, setting.kind), setting.roles

    def mark(marks: Marks) -> Mark | None:
        name = marks.labels.get(setting.label, "") if setting.label else ""
        result = own(marks) or (Mark(name) if name else None)
        return (
            result._replace(role=marks.labels.get(roles.label, ""))
            if result is not None and roles is not None
            else result
        )

    def desired(workload: _Custom) -> Desired:
        spec = {"spec": msgspec.json.decode(workload.spec)}
        counts = dict(_roles(spec, roles)) if roles is not None else {}
        size = sum(counts.values()) if roles is not None else _number(spec, setting.replicas or "", "")
        return Desired(size=size, pods=size, roles=counts, idle="" if size else "has no replicas")

    return Kind(
        row=row, controllers=controllers, mark=mark, form=_Custom, desired=desired, below=_named_fields(setting)
    )


def _named_fields(setting: Custom) -> FieldTree:
    """The fields of the spec that the paths of the setting name."""
    if setting.roles is None:
        named = _tree([setting.replicas or ""])
    else:
        named = _tree([setting.roles.path], [_tree([setting.roles.name, setting.roles.replicas])])
    tree: FieldTree = named["spec"]
    return tree


def _tree(paths: Sequence[str], end: Any = None) -> dict[str, Any]:  # noqa: ANN401 - a tree of fields
    """The fields on these paths, with `end` below the last one of each. A path within another one adds nothing."""
    tree: dict[str, Any] = {}
    for path in sorted(paths, key=len, reverse=True):
        *above, last = path.split(".")
        level = tree
        for key in above:
            level = level.setdefault(key, {})
        level.setdefault(last, end)
    return tree


def _roles(spec: object, roles: Roles) -> Iterator[tuple[str, int]]:
    """The name and number of pods of each role.

    Raises:
        ValueError: they cannot be read; a sentence for a person.
    """
    entries = _value_at(spec, roles.path, "")
    if not isinstance(entries, list):
        raise ValueError(f"{roles.path} is no list: {_correct('roles.path')}.")  # noqa: TRY004 - a fault of the object
    if len(entries) > MOST_ROLES:
        raise ValueError(f"{roles.path} has {len(entries)} items: write at most {MOST_ROLES}.")
    seen: set[str] = set()
    for number, entry in enumerate(entries):
        prefix = f"{roles.path}[{number}]."
        name = _value_at(entry, roles.name, prefix)
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_ROLE or name in seen:
            raise ValueError(
                f"{prefix}{roles.name} is {quoted(str(name))}: write a name of its own, of at most 63 characters."
            )
        seen.add(name)
        yield name, _number(entry, roles.replicas, prefix)


def _number(value: object, path: str, prefix: str) -> int:
    number = _value_at(value, path, prefix)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _MOST:
        raise ValueError(f"{prefix}{path} is {quoted(str(number))}: write a whole number from 0 to {_MOST}.")
    return number


def _value_at(value: Any, path: str, prefix: str) -> object:  # noqa: ANN401 - any JSON value
    """The value at this path, which `prefix` precedes in messages."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        raise ValueError(f"it has no field {prefix}{path}: write it, or {_correct('the path')}.")
    return value


def _correct(name: str) -> str:
    return f"correct {name} in the setting workloads.custom"
