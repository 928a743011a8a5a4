"""scheduler-plugins' coscheduling: a label that names its PodGroup, and the two labels of its older versions."""

from __future__ import annotations

from msgspec import Struct

from gangsched.config.dialects import DialectRow
from gangsched.config.settings import Settings
from gangsched.core.objects.podgroup import GroupSpec
from gangsched.kube import wire
from gangsched.kube.dialects.dialect import Dialect
from gangsched.kube.dialects.dialect_fields import honoured
from gangsched.kube.dialects.dialect_kind import Kind, Resources, at_least_one, resources, wait_s


class CoschedulingSpec(Struct, gc=False, rename="camel"):
    """The parts of the spec that gangsched reads."""

    min_member: int = 0
    min_resources: Resources | None = None
    schedule_timeout_seconds: int | None = None


COSCHEDULING_FIELDS = (
    honoured("minMember", "the minimum, from 1"),
    honoured("minResources", "must be free in all before the first member is bound"),
    honoured("scheduleTimeoutSeconds", "the longest wait; 0 means the default"),
)


def coscheduling_terms(spec: CoschedulingSpec, _: wire.Meta) -> GroupSpec:
    """The terms of such a PodGroup.

    Raises:
        ValueError: a number is out of range.
    """
    return GroupSpec(
        min_member=at_least_one("spec.minMember", spec.min_member),
        max_schedule_time_s=wait_s("spec.scheduleTimeoutSeconds", spec.schedule_timeout_seconds),
        min_resources=resources(spec.min_resources),
    )


def dialect(row: DialectRow, _: Settings) -> Dialect:
    kind = Kind(resource=row.resources[0], spec=CoschedulingSpec, terms=coscheduling_terms, fields=COSCHEDULING_FIELDS)
    return Dialect(row=row, kind=kind)
