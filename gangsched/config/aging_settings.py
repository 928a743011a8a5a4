"""Settings of aging: how waiting raises a group in the order."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gangsched.config.part import DurationOrZero, SettingsPart
from gangsched.core.objects import policy
from gangsched.core.objects.duration import parse_duration


class Aging(SettingsPart):
    """How waiting raises a group in the order, as a higher priority would; nobody is preempted for it."""

    every: DurationOrZero = Field(
        default="0s",
        description="After each such time that a complete group has waited it stands `by` higher, as a duration from "
        "0s to 168h. Shorter: groups of low priority wait less behind those of high priority. 0s: only the priority "
        "and the age count.",
    )
    by: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=10, description="How much is added to the priority each time."
    )
    most: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=100,
        description="How much is added in all at most. Larger: a group that has waited long passes groups of much "
        "higher priority.",
    )

    def rules(self) -> policy.Aging:
        """The settings in the form that the core uses."""
        return policy.Aging(every_s=parse_duration(self.every, shortest_s=0), by=self.by, most=self.most)
