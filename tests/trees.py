"""Objects of a tree of Kubernetes' own groups, in the shape in which the API server serves them, and their pods."""

from __future__ import annotations

from typing import Any

from gangsched.core.objects.declaration import COMPOSITE, NATIVE
from gangsched.core.objects.pod import Pod
from gangsched.core.objects.podgroup import ForeignGroup
from gangsched.kube.dialects.dialect_table import DEFAULT
from tests.builders import pod
from tests.served import served_group

CREATED = "1970-01-12T13:46:{:02}Z"


def leaf(
    name: str, parent: str = "", *, least: int | None = 3, age: int = 0, uid: str = "", **spec: Any
) -> ForeignGroup:
    """A PodGroup below `parent`; basic if `least` is None. A larger `age` (s) makes it older."""
    return _object(NATIVE, name, parent, {"minCount": least} if least is not None else None, age, uid, spec)


def inner(
    name: str, parent: str = "", *, least: int | None = 2, age: int = 0, uid: str = "", **spec: Any
) -> ForeignGroup:
    """A CompositePodGroup; basic if `least` is None."""
    return _object(COMPOSITE, name, parent, {"minGroupCount": least} if least is not None else None, age, uid, spec)


def _object(
    dialect: str, name: str, parent: str, gang: dict[str, int] | None, age: int, uid: str, spec: dict[str, Any]
) -> ForeignGroup:
    body = {"schedulingPolicy": {"gang": gang} if gang is not None else {"basic": {}}} | spec
    if parent:
        body |= {"parentCompositePodGroupName": parent, "workloadRef": {"workloadName": "w", "templateName": "t"}}
    return served_group(dialect, name, body, uid=uid or f"uid-{name}", creationTimestamp=CREATED.format(50 - age))


def under(key: str) -> dict[str, Any]:
    """The part of a spec that asks for one domain of this label."""
    return {"schedulingConstraints": {"topology": [{"key": key}]}}


def members_of(group: str, count: int, *, first: int = 0, **fields: Any) -> list[Pod]:
    """Pods that name this PodGroup in their spec."""
    said = DEFAULT.declaration({}, {}, scheduling_group=group)
    return [pod(f"{group}-{number}", group="", declaration=said, **fields) for number in range(first, first + count)]
