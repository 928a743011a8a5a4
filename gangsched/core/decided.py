"""What a scheduling cycle has decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from gangsched.core.objects.declaration import GroupKey
from gangsched.core.objects.effects import BindPod
from gangsched.core.objects.pod import Pod
from gangsched.core.planning.ask import Ask


class Left(NamedTuple):
    """What a cycle did not place of the members above a gang's minimum: parts, each as a whole, and single members."""

    parts: Sequence[Ask]
    extras: Sequence[Pod]

    @classmethod
    def of(cls, parts: Iterable[tuple[Ask, bool]], extras: Iterable[Pod], refused: Container[str]) -> Self:
        """What is left of these parts, each with whether it was reached, if these members were refused, by UID."""
        left = [part for part, reached in parts if not reached or any(pod.uid in refused for pod in part.members)]
        return cls(left, [*extras])


@dataclass(slots=True)
class Decided:
    """The results of a cycle: the bindings to send, the gangs it tried, and the number of refusals by reason.

    `left` are the parts above each gang's minimum, and the single members, that have no node yet: refused, or not
    reached within the budget.
    """

    effects: list[BindPod] = field(default_factory=list)
    tried: dict[GroupKey, None] = field(default_factory=dict)
    left: dict[GroupKey, Left] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)
