"""PodDisruptionBudgets."""

from __future__ import annotations

from msgspec import Struct

from gangsched.core.objects.shape import Requirement


class DisruptionBudget(Struct, frozen=True, gc=False):
    """How many of the pods that a PodDisruptionBudget selects may be evicted now, as its controller last said.

    `selector` chooses pods of its namespace: all if it is empty, none if it is None. `allowed` more of them may be
    evicted, of `expected` that there should be. `disrupted` names pods whose eviction was admitted already, and which
    are not counted in `allowed` any more. `counts_unready`: a pod that runs and is not ready is evicted only if it
    allows that.
    """

    namespace: str
    name: str
    selector: tuple[Requirement, ...] | None
    allowed: int = 0
    expected: int = 0
    disrupted: frozenset[str] = frozenset()
    counts_unready: bool = True

    @property
    def key(self) -> str:
        """Its namespace and name."""
        return f"{self.namespace}/{self.name}"
