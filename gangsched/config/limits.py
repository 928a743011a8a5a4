"""What one namespace may have, so that it cannot stop the scheduling of the others."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gangsched.config.part import Part
from gangsched.core.objects import policy

Number = Annotated[int, Field(ge=0, le=1_000_000)]


class NamespaceLimits(Part):
    """Limits of each namespace. What meets one says so with the reason NamespaceLimit, and which limit it is."""

    held_percent: Annotated[int, Field(ge=1, le=100)] = Field(
        default=25,
        description="Most of each resource, in percent of the allocatable of all nodes together (cordoned ones too, "
        "whoever uses it), that may be held for members to come (roles with templates, docs/templates.md); 100 for no "
        "limit. Members that exist do not count. Larger: larger groups of that kind can start, and one namespace can "
        "keep more from the others.",
    )
    held_places: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=1000,
        description="Most places for members to come that may be held at once, whatever they ask for.",
    )
    free_places: Number = Field(
        default=10,
        description="So many places may be held though they are more than `heldPercent`, if they are no more than the "
        "four nodes with most of the resource have: in a small cluster hardly any group with templates could start "
        "without. From sixteen equal nodes on it changes nothing. 0: the percentage always counts.",
    )
    waiting_groups: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        default=500,
        description="So many groups that are complete and wait for room are tried; those beyond keep their order and "
        "enter as others are bound, deleted or time out. Pods without a group do not count. Larger: one namespace's "
        "groups cost the scheduler more time.",
    )

    def rules(self) -> policy.NamespaceLimits:
        """What the core decides by."""
        return policy.NamespaceLimits(
            held_percent=self.held_percent,
            held_places=self.held_places,
            free_places=self.free_places,
            waiting_groups=self.waiting_groups,
        )
