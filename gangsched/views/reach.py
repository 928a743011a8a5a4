"""Limits which groups and nodes a diagnosis may name to the person who asks."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.planning.refusal import Obstacle

if TYPE_CHECKING:
    from gangsched.views.diagnosed import Diagnosis, Shortfall

_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
A_NODE = "(a node)"
"""Replaces the name of a node that is hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Only groups of this `namespace` are named, unless it is empty, and nodes only if `node_names`."""

    namespace: str = ""
    node_names: bool = True

    def has(self, key: GroupKey) -> bool:
        """Whether the group may be named."""
        return self.namespace in ("", key.namespace)


EVERYTHING = Reach()


def without(names: Container[str], diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with these node names hidden, in sentences and in label values.

    A word that equals such a name by chance is hidden too.
    """
    hide = partial(_hidden, names)
    shortfall = diagnosis.shortfall
    return replace(
        diagnosis,
        message=hide(diagnosis.message),
        besides=[hide(said) for said in diagnosis.besides],
        helps=[hide(said) for said in diagnosis.helps],
        demand=[structs.replace(each, domain=hide(each.domain)) for each in diagnosis.demand],
        shortfall=None if shortfall is None else _shortfall_without(names, shortfall),
    )


def _shortfall_without(names: Container[str], shortfall: Shortfall) -> Shortfall:
    hide = partial(_hidden, names)

    def those(obstacles: Sequence[Obstacle]) -> tuple[Obstacle, ...]:
        return tuple(Obstacle(each.reason, each.nodes, hide(each.resource)) for each in obstacles)

    return replace(
        shortfall,
        gaps=[replace(gap, obstacles=those(gap.obstacles)) for gap in shortfall.gaps],
        groups=[
            replace(
                group,
                first=(),
                shared=tuple((key, hide(value)) for key, value in group.shared),
                obstacles=those(group.obstacles),
            )
            for group in shortfall.groups
        ],
    )


def _hidden(names: Container[str], text: str) -> str:
    return _WORD.sub(lambda found: A_NODE if found[0] in names else found[0], text)
