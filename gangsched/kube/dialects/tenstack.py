"""tenstack's batch scheduler: a label that names its PodGroup.

There, minResources is the size of one member, so minMember times as much must be free before the first one is bound.
gangsched supports priorityClassName, which tenstack's documentation describes and its code never reads.
"""

from __future__ import annotations

from msgspec import Struct

from gangsched.config.dialects import DialectRow
from gangsched.config.settings import Settings
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect, quoted
from gangsched.kube.dialects.dialect_fields import honoured
from gangsched.kube.dialects.dialect_kind import Kind, Resources, at_least_one, resources, wait_s
from gangsched.kube.dialects.go_duration import go_seconds

_TIME = "spec.maxScheduleTime"


class _TenstackSpec(Struct, gc=False, rename="camel"):
    min_member: int = 0
    min_resources: Resources | None = None
    max_schedule_time: str | None = None
    priority_class_name: str | None = None


_FIELDS = (
    honoured("minMember", "the minimum, from 1"),
    honoured("minResources", "the size of one member: `minMember` times that must be free before the first is bound"),
    honoured("maxScheduleTime", "the longest wait, a Go duration; 0 means the default"),
    honoured("priorityClassName", "the order of groups"),
)


def _terms(spec: _TenstackSpec, _: wire.Meta) -> GroupSpec:
    least = at_least_one("spec.minMember", spec.min_member)
    return GroupSpec(
        min_member=least,
        max_schedule_time_s=wait_s(_TIME, _seconds(spec.max_schedule_time or "0")),
        priority_class=spec.priority_class_name or "",
        min_resources=resources(spec.min_resources, times=least),
    )


def _seconds(text: str) -> float:
    try:
        return go_seconds(text)
    except ValueError:
        raise ValueError(f"{_TIME} is {quoted(text)}: write a duration such as 90s, 5m or 1h30m") from None


def dialect(row: DialectRow, _: Settings) -> Dialect:
    return Dialect(row=row, kind=Kind(resource=row.resources[0], spec=_TenstackSpec, terms=_terms, fields=_FIELDS))
