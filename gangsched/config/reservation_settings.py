"""Settings of reservations: for whom places are kept until others have ended, and whose word is taken for when."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from gangsched.config.part import DurationOrZero, SettingsPart
from gangsched.core.objects import policy
from gangsched.core.objects.duration import parse_duration


class Reservation(SettingsPart):
    """For which groups places are reserved for later, so that none starves behind smaller ones."""

    starvation_age: DurationOrZero = Field(
        default="30m",
        description="How long a group that is complete waits for room before places are reserved for it, as a "
        "duration from 0s to 168h. Shorter: large groups start earlier, and others wait longer where nobody knows when "
        "pods end. 0s: no places are reserved, so a large group waits for as long as smaller ones keep coming.",
    )
    backfill_by: Literal["Declared", "Limits"] = Field(
        default="Declared",
        description="Who may use reserved places until they are needed, and is waited for there. Declared: who ends in "
        "time by a limit (activeDeadlineSeconds) or by a declared run time (expectedRunTime); one that lasts longer "
        "than declared is evicted with its whole group once another waits for nothing else. Limits: only who ends by a "
        "limit.",
    )

    def rules(self) -> policy.Reservations:
        """The settings in the form that the core uses."""
        return policy.Reservations(
            starvation_age_s=parse_duration(self.starvation_age, shortest_s=0),
            by_promises=self.backfill_by == "Declared",
        )
