"""Settings of who goes first and who makes room: aging, preemption and reservations."""

from __future__ import annotations

from typing import Annotated, Literal

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


class Preemption(SettingsPart):
    """What may be evicted so that a group of higher priority gets its places."""

    enabled: bool = Field(
        default=True,
        description="Whether members of groups, and pods without a group, are evicted for a group of higher priority "
        "that fits nowhere else. The chart grants the right to read PodDisruptionBudgets only then. false: every group "
        "waits until others end by themselves.",
    )
    delay: DurationOrZero = Field(
        default="0s",
        description="How long a group waits after it is complete before it preempts, as a duration from 0s to 168h. "
        "Longer: an autoscaler has time to add nodes first, and groups of high priority start later.",
    )
    victims: Literal["Own", "All"] = Field(
        default="Own",
        description="Whose pods may be evicted. Own: those with one of `schedulerNames`. All: also those of other "
        "schedulers, which may bind their pods to the same nodes again, and with other rules of priority.",
    )
    budgets: Literal["Honour", "Prefer"] = Field(
        default="Honour",
        description="What PodDisruptionBudgets mean for the choice of victims. Honour: no more pods are chosen than "
        "they allow at that time. Prefer: more are chosen if there is no other way; the API server then refuses "
        "evictions until the budgets allow them, and their places are kept for up to a minute meanwhile.",
    )
    min_runtime: DurationOrZero = Field(
        default="0s",
        description="How long a group is spared after its minimum was bound, as a duration from 0s to 168h. It doubles "
        "with each earlier preemption of the group, up to 1h. Longer: less work is lost, and groups of high priority "
        "start later.",
    )
    most_victims_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=600,
        description="Maximum number of pods evicted for other groups in a minute. Fewer: a wrong priority does less "
        "harm, and large groups of high priority start later.",
    )
    spare_uncontrolled: bool = Field(
        default=False,
        description="Whether pods that no controller would create again, and members of Jobs that would count the "
        "eviction as a failure, are never evicted. false: they are evicted if it costs less than evicting twice as "
        "much of others' work.",
    )

    def rules(self) -> policy.Preemption:
        """The settings in the form that the core uses."""
        return policy.Preemption(
            enabled=self.enabled,
            delay_s=parse_duration(self.delay, shortest_s=0),
            all_victims=self.victims == "All",
            exceeds_budgets=self.budgets == "Prefer",
            min_runtime_s=parse_duration(self.min_runtime, shortest_s=0),
            victims_per_minute=self.most_victims_per_minute,
            spares_uncontrolled=self.spare_uncontrolled,
        )


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
