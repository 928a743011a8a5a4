"""What is held for members to come, namespace by namespace: the amounts on which caps are put."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gangsched.core.cluster.capacity import PODS
from gangsched.core.objects.pod import Pod

_NOTHING: Mapping[str, int] = Counter()


def asked_by(places: Iterable[Pod]) -> Counter[str]:
    """What these places take in all, by resource; their number is that of `pods`."""
    asked: Counter[str] = Counter()
    for pod in places:
        asked[PODS] += 1
        for resource, amount in pod.shape.requests:
            asked[resource] += amount
    return asked


class Holdings:
    """Kept by the ledger, which a claim for a member to come enters and leaves."""

    def __init__(self) -> None:
        self._nodes_changed = False
        self._eased: set[str] = set()
        self._held: dict[str, Counter[str]] = {}

    def __eq__(self, other: object) -> bool:
        """Whether as much is held."""
        return isinstance(other, Holdings) and self._held == other._held

    __hash__ = None  # type: ignore[assignment]

    def of(self, namespace: str) -> Mapping[str, int]:
        """What the namespace holds, by resource; the number of places is that of `pods`."""
        return self._held.get(namespace, _NOTHING)

    def add(self, place: Pod) -> None:
        """Another place is held."""
        self._held.setdefault(place.namespace, Counter()).update(asked_by([place]))

    def remove(self, place: Pod) -> None:
        """A place is held no longer: a member has taken it, or it was given up."""
        held = self._held[place.namespace]
        held.subtract(asked_by([place]))
        self._eased.add(place.namespace)
        if not held[PODS]:
            del self._held[place.namespace]

    def note_nodes_changed(self) -> None:
        """The shares that namespaces may hold may have changed."""
        self._nodes_changed = True

    def take_eased(self, namespaces: Iterable[str]) -> list[str]:
        """Which of these namespaces hold less, or may have a larger share, than at the last call."""
        eased = [name for name in namespaces if self._nodes_changed or name in self._eased]
        self._eased = set()
        self._nodes_changed = False
        return eased
