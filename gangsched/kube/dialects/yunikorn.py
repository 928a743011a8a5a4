"""YuniKorn's applications with task groups.

An application is a gang only if one of its pods, the originator, lists its task groups. Each task group is a role with
a minimum. The other pods name their task group without its size, so the core combines the declarations. A pod that
names an application and neither lists nor names a task group is scheduled alone, as in YuniKorn. A pod that lists or
names task groups without an application is an error; YuniKorn would create an application for it.

Where YuniKorn creates placeholder pods for all task groups before the application starts, gangsched waits for the
members themselves. Only a Spark driver creates the members of the other task groups once it runs, so for these it holds
places of the size that the list gives.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from gangsched.config.dialects import DialectRow, Key
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import OBJECT_NAME, Declaration, Role
from gangsched.core.objects.shape import Shape
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import LONGEST_NAME, Dialect, quoted, sentence
from gangsched.kube.dialects.dialect_fields import honoured, needless, told
from gangsched.kube.dialects.dialect_kind import MOST_MEMBERS, Resources, resources
from gangsched.kube.terms.node_terms import toleration
from gangsched.kube.terms.pod_terms import labels

MOST_TASK_GROUPS = 64
"""Largest number of task groups: that of the roles in a PodGroup."""
_ROLE = Key("spark-role", label=True)
_DRIVER = "driver"

_TEXTS = (
    told(
        Key("yunikorn.apache.org/schedulingPolicyParameters"),
        "the timeout of placeholders, and whether the pods are scheduled one by one after it; here the group backs off "
        "after `defaultMaxScheduleTime` and is tried again as a whole",
    ),
    *(
        told(key, "queues and their quota are not enforced", usual=("root.default",))
        for key in (
            Key("yunikorn.apache.org/queue"),
            Key("yunikorn.apache.org/queue", label=True),
            Key("queue", label=True),
        )
    ),
    needless(Key("yunikorn.apache.org/user.info"), "who submitted the application, for queues"),
    told(Key("yunikorn.apache.org/allow-preemption"), "priorities decide who is preempted", usual=("true",)),
    honoured(_ROLE, "for a Spark driver, places are held until the members of the other task groups exist"),
    honoured("task-groups[].name", "a role"),
    honoured("task-groups[].minMember", "the role's minimum, from 1"),
    honoured("task-groups[].minResource", "the size of such a place; otherwise the members' own requests count"),
    honoured("task-groups[].nodeSelector", "that of such a place; otherwise the members' own counts"),
    honoured("task-groups[].tolerations", "those of such a place; otherwise the members' own count"),
    *(
        needless(f"task-groups[].{name}", "for placeholder pods, which gangsched lacks: the members' own counts")
        for name in ("affinity", "topologySpreadConstraints", "labels", "annotations")
    ),
)


class _TaskGroup(Struct, gc=False, rename="camel"):
    """The parts of a task group that gangsched reads, those about placeholders only if it holds places."""

    name: str = ""
    min_member: int = 0
    min_resource: Raw = Raw(b"{}")
    node_selector: Raw = Raw(b"{}")
    tolerations: Raw = Raw(b"[]")


_LIST = msgspec.json.Decoder(list[_TaskGroup])


class YunikornDialect(Dialect):
    """Applications whose pods themselves declare the gang."""

    @property
    def marks(self) -> tuple[Key, ...]:
        # Many pods outside gangs have an application's label, so it is not a mark.
        return (*self.row.minimum, *self.row.role)

    def nameless(self, base: Declaration, texts: Mapping[Key, str]) -> Declaration | None:
        [task_groups] = self.row.minimum
        if task_groups not in texts and not base.role:
            return None
        does = "lists task groups" if task_groups in texts else "names a task group"
        return replace(
            base,
            error=f"The pod {does}, but no application: give it the label applicationId, the same on all of its pods.",
        )

    def parse(self, base: Declaration, texts: Mapping[Key, str]) -> Declaration | None:
        [task_groups] = self.row.minimum
        text = texts.get(task_groups)
        if text is None:
            return base if base.role else None
        try:
            groups = _task_groups(text)
            if texts.get(_ROLE) != _DRIVER or not base.role or not OBJECT_NAME.fullmatch(base.group):
                return replace(base, roles=tuple(map(_role, groups)))
            # The PodGroup that records the places must have the application's name.
            roles = tuple(_role(group, held=group.name != base.role) for group in groups)
            return replace(base, roles=roles, leading=base.role)
        except ValueError as error:
            raise ValueError(f"{sentence(task_groups)} is {quoted(text)}: {error}.") from None


def _role(group: _TaskGroup, *, held: bool = False) -> Role:
    """The task group as a role; if places are `held` for its members, with what they will request.

    Raises:
        ValueError: that cannot be read; the message says what to write.
    """
    template = _template(group) if held else None
    return Role(name=group.name, min_member=group.min_member, template=template)


def _template(group: _TaskGroup) -> Shape:
    try:
        requests = msgspec.json.decode(group.min_resource, type=Resources | None)
        selector = msgspec.json.decode(group.node_selector, type=wire.Strings | None)
        tolerations = msgspec.json.decode(group.tolerations, type=list[wire.Toleration] | None)
    except (msgspec.DecodeError, RecursionError):
        raise ValueError(
            f"give the task group {quoted(group.name)} a readable minResource, nodeSelector and tolerations"
        ) from None
    return Shape(
        requests=resources(requests, field="minResource"),
        node_selector=labels(selector),
        tolerations=tuple(map(toleration, tolerations or ())),
    )


def _task_groups(text: str) -> list[_TaskGroup]:
    """The task groups, by name.

    Raises:
        ValueError: the list is invalid; the message says what to write.
    """
    groups = _decoded(text)
    names = {group.name for group in groups}
    if not 1 <= len(groups) <= MOST_TASK_GROUPS or len(names) < len(groups):
        raise ValueError(f"list 1 to {MOST_TASK_GROUPS} task groups of different names")
    if any(not name or len(name) > LONGEST_NAME or not name.isprintable() for name in names):
        raise ValueError(f"give every task group a name of at most {LONGEST_NAME} characters")
    if any(group.min_member < 1 for group in groups) or sum(group.min_member for group in groups) >= MOST_MEMBERS:
        raise ValueError(f"give every task group a minMember from 1, less than {MOST_MEMBERS} in all")
    return sorted(groups, key=lambda group: group.name)


def _decoded(text: str) -> list[_TaskGroup]:
    try:
        return _LIST.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise ValueError(
            "write a JSON list of objects, each with a name and, as a whole number without quotes, a minMember"
        ) from None


def dialect(row: DialectRow, _: Settings) -> Dialect:
    return YunikornDialect(row=row, texts=_TEXTS)
