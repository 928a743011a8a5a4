"""Limits of one namespace, so that it cannot block the scheduling of other namespaces."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gangsched.config.part import SettingsPart
from gangsched.core.objects import policy

Number = Annotated[int, Field(ge=0, le=1_000_000)]


class NamespaceLimits(SettingsPart):
    """Limits of each namespace. A group that reaches one has the reason NamespaceLimit; its message names the limit."""

    held_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        default=25,
        description="Largest share of each resource that places for members that do not exist yet (roles with "
        "templates, docs/templates.md) may reserve, in percent of the allocatable of all nodes, including cordoned "
        "nodes and what is in use. 100 is no limit. Existing members do not count. Larger: larger groups with "
        "templates can start, and one namespace can withhold more from the others.",
    )
    held_places: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1000,
        description="Largest number of places that may be reserved at once for members that do not exist yet, "
        "regardless of their requests.",
    )
    free_places: Number = Field(
        default=10,
        description="Number of places that may be reserved even above `heldPercent`, as long as they do not exceed "
        "the four nodes with most of the resource. Without this exception hardly any group with templates could start "
        "in a small cluster. From sixteen equal nodes on it has no effect. 0: the percentage always applies.",
    )
    waiting_groups: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=500,
        description="Number of complete groups waiting for room that the scheduler tries. Further groups keep their "
        "order and follow as others are bound, deleted or time out. Pods without a group do not count. Larger: one "
        "namespace's groups cost the scheduler more time.",
    )

    def rules(self) -> policy.NamespaceLimits:
        """The limits in the form that the core uses."""
        return policy.NamespaceLimits(**dict(self))
