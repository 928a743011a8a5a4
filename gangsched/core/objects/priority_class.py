"""PriorityClasses."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class PriorityClass(Struct, frozen=True, gc=False):
    """The priority of the pods and groups that name it; `preempts`: others may be preempted for them."""

    value: int
    preempts: bool = True


PriorityClasses = Mapping[str, PriorityClass]
"""PriorityClasses by name."""
