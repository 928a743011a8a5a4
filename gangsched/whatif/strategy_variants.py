"""Variants of what a user wants to try: its PodGroups with each of the built-in placement strategies."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from msgspec.structs import replace

from gangsched.core.objects.podgroup import Group
from gangsched.core.planning.strategies import STRATEGIES
from gangsched.whatif.world.contents import World


def by_strategy(world: World) -> Iterator[tuple[str, World]]:
    """The world with each strategy in all of its PodGroups; nothing if it has none, because only they name one."""
    if not any(group.spec is not None for group in world.groups):
        return
    for name in STRATEGIES:
        yield name, dataclasses.replace(world, groups=[_with(group, name) for group in world.groups])


def _with(group: Group, strategy: str) -> Group:
    return group if group.spec is None else replace(group, spec=replace(group.spec, strategy=strategy))
