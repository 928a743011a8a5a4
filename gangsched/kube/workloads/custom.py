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


def kind(found: Custom) -> Kind[_Custom]:
    """The kind that this setting describes."""
    group, _, version = found.api_version.partition("/")
    row = WorkloadRow(
        name=found.name,
        kind=found.kind,
        resource=CustomResource(group=group, versions=(version,), plural=found.plural),
        size="the paths that the setting names",
    )
    controllers = None if found.label else ((group, found.kind),)
    own, roles = controlled(group, found.kind), found.roles

    def mark(marks: Marks) -> Mark | None:
        name = marks.labels.get(found.label, "") if found.label else ""
        at = own(marks) or (Mark(name) if name else None)
        return at._replace(role=marks.labels.get(roles.label, "")) if at is not None and roles is not None else at

    def desired(item: _Custom) -> Desired:
        spec = {"spec": msgspec.json.decode(item.spec)}
        counts = dict(_roles(spec, roles)) if roles is not None else {}
        size = sum(counts.values()) if roles is not None else _number(spec, found.replicas or "", "")
        return Desired(size=size, pods=size, roles=counts, idle="" if size else "has no replicas")

    return Kind(row=row, controllers=controllers, mark=mark, form=_Custom, desired=desired, below=_read(found))


def _read(found: Custom) -> FieldTree:
    """The fields of the spec that the paths of the setting name."""
    if found.roles is None:
        named = _tree([found.replicas or ""])
    else:
        named = _tree([found.roles.path], [_tree([found.roles.name, found.roles.replicas])])
    read: FieldTree = named["spec"]
    return read


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
    items = _at(spec, roles.path, "")
    if not isinstance(items, list):
        raise ValueError(f"{roles.path} is no list: {_correct('roles.path')}.")  # noqa: TRY004 - a fault of the object
    if len(items) > MOST_ROLES:
        raise ValueError(f"{roles.path} has {len(items)} items: write at most {MOST_ROLES}.")
    seen: set[str] = set()
    for number, item in enumerate(items):
        where = f"{roles.path}[{number}]."
        name = _at(item, roles.name, where)
        if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_ROLE or name in seen:
            raise ValueError(
                f"{where}{roles.name} is {quoted(str(name))}: write a name of its own, of at most 63 characters."
            )
        seen.add(name)
        yield name, _number(item, roles.replicas, where)


def _number(value: object, path: str, where: str) -> int:
    found = _at(value, path, where)
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= _MOST:
        raise ValueError(f"{where}{path} is {quoted(str(found))}: write a whole number from 0 to {_MOST}.")
    return found


def _at(value: Any, path: str, where: str) -> object:  # noqa: ANN401 - any JSON value
    """The value at this path, which `where` precedes in messages."""
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        raise ValueError(f"it has no field {where}{path}: write it, or {_correct('the path')}.")
    return value


def _correct(what: str) -> str:
    return f"correct {what} in the setting workloads.custom"
