"""What a pod's ResourceClaims ask of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gangsched.core.constraints.device_stays import Wishes
from gangsched.core.objects.shape import NodeTerm


@dataclass(frozen=True, slots=True)
class UsesDevices:
    """The affinities of the devices already allocated to a pod's claims, and the wishes of its other claims.

    `ready` is False if a claim is not ready. `claim`, the one that is not ready, and `claims`, the one behind each
    affinity, are those of a single pod of the class.
    """

    affinities: tuple[tuple[NodeTerm, ...], ...] = ()
    wishes: Wishes = ()
    ready: bool = True
    claim: str = field(default="", compare=False)
    claims: tuple[str, ...] = field(default=(), compare=False)

    def in_order(self) -> Sequence[object]:
        """The fields that matter to placement."""
        return self.ready, repr(self.affinities), repr(self.wishes)
