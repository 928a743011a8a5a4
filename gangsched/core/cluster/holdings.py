"""The amounts that namespaces hold for members that do not exist yet, which caps limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from gangsched.core.objects.pod import Pod
from gangsched.core.objects.shape import PODS

_NOTHING: Mapping[str, int] = Counter()


def asked_by(placeholders: Iterable[Pod]) -> Counter[str]:
    """The sum of what these placeholders request, by resource; `pods` is their number."""
    asked: Counter[str] = Counter()
    for pod in placeholders:
        asked[PODS] += 1
        for resource, amount in pod.shape.requests:
            asked[resource] += amount
    return asked


class Holdings:
    """The amounts that each namespace holds for members that do not exist yet."""

    def __init__(self) -> None:
        self._nodes_changed = False
        self._eased: set[str] = set()
        self._held: dict[str, Counter[str]] = {}

    def __eq__(self, other: object) -> bool:
        """Whether the same amounts are held."""
        return isinstance(other, Holdings) and self._held == other._held

    __hash__ = None  # type: ignore[assignment]

    def of(self, namespace: str) -> Mapping[str, int]:
        """What the namespace holds, by resource; `pods` is the number of reservations."""
        return self._held.get(namespace, _NOTHING)

    def add(self, placeholder: Pod) -> None:
        """Count another reservation."""
        self._held.setdefault(placeholder.namespace, Counter()).update(asked_by([placeholder]))

    def remove(self, placeholder: Pod) -> None:
        """Stop counting a reservation: a member has taken it, or it was given up."""
        held = self._held[placeholder.namespace]
        held.subtract(asked_by([placeholder]))
        self._eased.add(placeholder.namespace)
        if not held[PODS]:
            del self._held[placeholder.namespace]

    def note_nodes_changed(self) -> None:
        """Note that the limits of namespaces, which are shares of the cluster, may have changed."""
        self._nodes_changed = True

    def take_eased(self, namespaces: Iterable[str]) -> list[str]:
        """The namespaces among these that hold less, or may have a higher limit, than at the last call."""
        if not (self._nodes_changed or self._eased):
            return []
        eased = [name for name in namespaces if self._nodes_changed or name in self._eased]
        self._eased, self._nodes_changed = set(), False
        return eased
