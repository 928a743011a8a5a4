"""What nodes' labels mean for planning: topology domains, wishes for nodes, and the order of names.

What was derived from all rows' labels is kept until one of those that it looks at changes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from gangsched.core.cluster.capacity import Capacity
from gangsched.core.cluster.domains import Domain, Domains, domains, names_of
from gangsched.core.cluster.preferences import ranks
from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.shape import Labels

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")
_MOST_KNOWN = 256
"""For so many wishes, and keys, it is kept what they make of all nodes; the oldest is forgotten."""


class NodeLabels:
    """Labels by node. Rows are those of `capacity`, which has a node before anything is asked of its labels."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._labels: dict[str, Mapping[str, str]] = {}
        self._rank: npt.NDArray[np.int64] | None = None
        self._preferred: dict[Preference, npt.NDArray[np.int64]] = {}
        self._domains: dict[str, Domains] = {}

    def of(self, name: str) -> Mapping[str, str]:
        """The node's labels; empty for an unknown node."""
        return self._labels.get(name, {})

    def set(self, name: str, labels: Labels) -> bool:
        """The node has these labels now. Returns whether topology domains in use may have changed."""
        before = self._labels.get(name)
        self._labels[name] = dict(labels)
        if before is None:
            self._rank = None
            return self._forget()
        return self._forget({key for key, _ in before.items() ^ self._labels[name].items()})

    def remove(self, name: str) -> bool:
        """The node is gone. Returns whether topology domains in use may have changed."""
        del self._labels[name]
        self._rank = None
        return self._forget()

    def rank(self) -> npt.NDArray[np.int64]:
        """Each row's place in the order of node names: the last tie-break of every strategy."""
        if self._rank is None:
            self._rank = np.argsort(np.argsort(np.array(self._capacity.names, dtype=object), kind="stable"))
        return self._rank

    def preference(self, wish: Preference) -> npt.NDArray[np.int64]:
        """Each row's place by this wish, 0 for the most preferred; see `core.cluster.preferences`."""
        return self._of_labels(self._preferred, wish, ranks)

    def domains(self, key: str) -> Domains:
        """The topology domains of this node label, and in which of them each row is."""
        return self._of_labels(self._domains, key, domains)

    def inside(self, domain: Domain) -> npt.NDArray[np.bool_]:
        """The rows of this domain."""
        key, value = domain
        return self.domains(key).inside(value)

    def _of_labels(
        self, kept: dict[Key, Found], key: Key, find: Callable[[list[Mapping[str, str]], Key], Found]
    ) -> Found:
        known = kept.get(key)
        if known is None:
            if len(kept) >= _MOST_KNOWN:
                del kept[next(iter(kept))]
            known = kept[key] = find([self.of(name) for name in self._capacity.names], key)
        return known

    def mismatches(self, expected: Mapping[str, Labels]) -> list[str]:
        """What is kept here otherwise than the nodes' labels say, in a sentence each."""
        wrong = []
        if self._labels != {name: dict(labels) for name, labels in expected.items()}:
            wrong.append("the labels are not those of the nodes")
        anew = NodeLabels(self._capacity)
        anew._labels = self._labels
        if self._rank is not None and not np.array_equal(self._rank, anew.rank()):
            wrong.append("the order of names is not that of the nodes")
        if any(not np.array_equal(kept, anew.preference(wish)) for wish, kept in self._preferred.items()):
            wrong.append("a preference is not what the labels say")
        for key, kept in self._domains.items():
            found = anew.domains(key)
            if kept.values != found.values or not np.array_equal(kept.of_row, found.of_row):
                wrong.append(f"the domains of {key} are not what the labels say")
        return wrong

    def _forget(self, changed: Container[str] | None = None) -> bool:
        """Find anew, when wanted, what was derived from labels of these keys; everything if a node has come or gone."""
        for wish in [wish for wish in self._preferred if changed is None or wish.key in changed]:
            del self._preferred[wish]
        outdated = [key for key in self._domains if changed is None or any(name in changed for name in names_of(key))]
        for key in outdated:
            del self._domains[key]
        return bool(outdated)
