"""Settings of preemption: whether pods of lower priority are evicted for a group, which ones, and how many at once."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gangsched.config.part import DurationOrZero, SettingsPart
from gangsched.core.objects import policy
from gangsched.core.objects.duration import parse_duration


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
