"""What is proven about open plans before anybody is evicted for them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from gangsched.core.gang.gang import Gang
from gangsched.core.gang.plan import Plan

Suffices = Callable[[Gang, Plan, Collection[str]], bool]
"""Whether the group has the plan's places, and fits, once these pods (by UID) have left."""


class Proofs(NamedTuple):
    """`proves` tells whether a plan of a group is right still, `suffices` whether it is enough that these leave."""

    proves: Callable[[Gang, Plan], bool]
    suffices: Suffices
