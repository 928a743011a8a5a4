"""YuniKorn's applications with task groups.

An application is a gang only if one of its pods, the originator, lists its task groups. Each task group is a role with
a minimum. The other pods name their task group without its size, so the core combines the declarations. A pod that
names an application and neither lists nor names a task group is scheduled alone, as in YuniKorn. A pod that lists or
names task groups without an application is an error; YuniKorn would create an application for it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from gangsched.config.dialects import Key, Row
from gangsched.config.settings import Settings
from gangsched.core.objects.declaration import Declaration, Role
from gangsched.kube.dialects.dialect import LONGEST_NAME, Dialect, quoted, sentence
from gangsched.kube.dialects.fields import honoured, needless, told
from gangsched.kube.dialects.kind import MOST_MEMBERS

MOST_TASK_GROUPS = 64
"""Largest number of task groups: that of the roles in a PodGroup."""


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
    needless(Key("yunikorn.apache.org/allow-preemption"), "gangsched preempts nothing"),
    honoured("task-groups[].name", "a role"),
    honoured("task-groups[].minMember", "the role's minimum, from 1"),
    *(
        needless(f"task-groups[].{name}", "describes placeholders, which gangsched lacks: the members' own spec counts")
        for name in ("minResource", "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints")
    ),
    *(
        needless(f"task-groups[].{name}", "put on placeholders, which gangsched lacks")
        for name in ("labels", "annotations")
    ),
)


class _TaskGroup(Struct, gc=False, rename="camel"):
    """The parts of a task group that gangsched reads. The others describe placeholder pods, which gangsched lacks."""

    name: str = ""
    min_member: int = 0


_LIST = msgspec.json.Decoder(list[_TaskGroup])


class YunikornDialect(Dialect):
    """Applications whose pods themselves declare the gang."""

    @property
    def marks(self) -> tuple[Key, ...]:
        # Many pods outside gangs have an application's label, so it is not a mark.
        return (*self.row.minimum, *self.row.role)

    def nameless(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:
        [task_groups] = self.row.minimum
        if task_groups not in said and not base.role:
            return None
        does = "lists task groups" if task_groups in said else "names a task group"
        return replace(
            base,
            error=f"The pod {does}, but no application: give it the label applicationId, the same on all of its pods.",
        )

    def parse(self, base: Declaration, said: Mapping[Key, str]) -> Declaration | None:
        [task_groups] = self.row.minimum
        text = said.get(task_groups)
        if text is None:
            return base if base.role else None
        try:
            return replace(base, roles=_roles(text))
        except ValueError as error:
            raise ValueError(f"{sentence(task_groups)} is {quoted(text)}: {error}.") from None


def _roles(text: str) -> tuple[Role, ...]:
    """The task groups, by name.

    Raises:
        ValueError: the list is invalid; the message says what to write.
    """
    found = _task_groups(text)
    names = {each.name for each in found}
    if not 1 <= len(found) <= MOST_TASK_GROUPS or len(names) < len(found):
        raise ValueError(f"list 1 to {MOST_TASK_GROUPS} task groups of different names")
    if any(not name or len(name) > LONGEST_NAME or not name.isprintable() for name in names):
        raise ValueError(f"give every task group a name of at most {LONGEST_NAME} characters")
    if any(each.min_member < 1 for each in found) or sum(each.min_member for each in found) >= MOST_MEMBERS:
        raise ValueError(f"give every task group a minMember from 1, less than {MOST_MEMBERS} in all")
    return tuple(Role(name=each.name, min_member=each.min_member) for each in sorted(found, key=lambda each: each.name))


def _task_groups(text: str) -> list[_TaskGroup]:
    try:
        return _LIST.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise ValueError(
            "write a JSON list of objects, each with a name and, as a whole number without quotes, a minMember"
        ) from None


def dialect(row: Row, _: Settings) -> Dialect:
    return YunikornDialect(row=row, texts=_TEXTS)
