"""Settings of the dialect volcano: where gangsched writes the phase of Volcano's PodGroups."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from gangsched.config.part import Namespace, SettingsPart, unique


class SchedulerLease(SettingsPart):
    """The Lease of Volcano's scheduler. While it is held, gangsched writes no phase."""

    name: Annotated[str, Field(min_length=1, max_length=253)] = Field(
        default="volcano", description="Name of the Lease, as its `--leader-elect-resource-name` says."
    )
    namespace: Namespace = Field(
        default="volcano-system",
        description="Namespace of the Lease, as its `--leader-elect-resource-namespace` says: the one that Volcano is "
        "installed in.",
    )


class Volcano(SettingsPart):
    """Settings of the dialect volcano."""

    write_phase: Annotated[
        tuple[Namespace, ...],
        Field(max_length=1024, strict=False, json_schema_extra={"uniqueItems": True}),
        AfterValidator(unique),
    ] = Field(
        default=(),
        description="Namespaces in which gangsched writes the field status.phase of Volcano's PodGroups "
        "(docs/dialects.md), for controllers that create no pods before it is Inqueue. Empty: in none. It never "
        "overwrites a phase that another client wrote, and writes none while Volcano's scheduler leads. The chart "
        "grants the right in these namespaces, which must exist.",
    )
    scheduler_lease: SchedulerLease = Field(
        default_factory=SchedulerLease,
        description="Lease of Volcano's scheduler. It has one only with leader election, which Volcano's chart turns "
        "off by default.",
    )
