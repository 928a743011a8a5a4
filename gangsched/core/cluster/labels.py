"""What node labels mean for planning: topology domains, preferences (`placement.prefer`), and the order of names.

A topology domain is the set of nodes that share a label's value, such as a zone, a rack or a block. A node without the
label is in no domain. For zone and region the deprecated label is accepted on a node that has only that one.

A preference is a wish, never a condition. The most important one decides; the next one only among nodes that are equal
by it. Values that are whole numbers are ordered as numbers and come before all others, which are ordered as text; with
Descending the larger value is preferred, numbers still first. A node without the label, or with a value that is not
among those named, comes last.

Results for all rows are cached until one of the labels in question changes.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from gangsched.core.constraints.node_rows import Nodes
from gangsched.core.inventory.capacity import Capacity
from gangsched.core.objects.arrays import IntArray, Mask
from gangsched.core.objects.declaration import Preference
from gangsched.core.objects.indexes import drop_oldest
from gangsched.core.objects.volumes import NOW_CALLED

Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")
_MOST_KNOWN = 256
"""Maximum number of preferences, and of label keys, whose results for all nodes are cached; the oldest is dropped."""
_LONGEST_NUMBER = 63
"""The maximum length of a label's value."""
_ALIASES = NOW_CALLED | {present: former for former, present in NOW_CALLED.items()}

Domain = tuple[str, str | None]
"""A label key and one of its values; None is a domain without nodes."""
Within = tuple[Domain | tuple[str, tuple[str, ...]], ...]
"""Where something may be: in all of these domains, outer ones first; empty is anywhere.

Several values of one label count as one domain.
"""


class Domains(NamedTuple):
    """A label's values in order, their positions, and for each row the position of its value, or -1."""

    values: tuple[str, ...]
    positions: Mapping[str | None, int]
    of_row: IntArray

    def inside(self, value: str | tuple[str, ...] | None) -> Mask:
        """The rows of the domains of this value or these values; no row for None and for a value that no node has."""
        if isinstance(value, tuple):
            return np.isin(self.of_row, [self.positions[one] for one in value if one in self.positions])
        inside: Mask = self.of_row == self.positions.get(value, len(self.values))
        return inside


def names_of(key: str) -> tuple[str, ...]:
    """The labels that make up the domains of this key."""
    return (key, _ALIASES[key]) if key in _ALIASES else (key,)


def domains(nodes: Sequence[Mapping[str, str]], key: str) -> Domains:
    """The domains of the label among nodes with these labels."""
    names = names_of(key)
    by_node = [next((labels[name] for name in names if name in labels), None) for labels in nodes]
    values = tuple(sorted({value for value in by_node if value is not None}))
    positions: dict[str | None, int] = {value: number for number, value in enumerate(values)}
    of_row = np.array([-1 if value is None else positions[value] for value in by_node], dtype=np.int64)
    return Domains(values, positions, of_row)


def ranks(nodes: Sequence[Mapping[str, str]], wish: Preference) -> IntArray:
    """Each node's rank by the preference, given its labels: 0 for the most preferred, equal for equally preferred."""
    values = [labels.get(wish.key) for labels in nodes]
    named = {value: at for at, value in reversed([*enumerate(wish.values)])}
    rank = named or _ordered({value for value in values if value is not None}, wish)
    last = len(rank)
    return np.array([last if value is None else rank.get(value, last) for value in values], dtype=np.int64)


def _ordered(values: set[str], wish: Preference) -> dict[str, int]:
    """Each value's rank; equal numbers, such as 7 and 007, have the same."""
    down = wish.order == "Descending"
    numbers = {value: int(value) for value in values if _is_whole_number(value)}
    rank = {number: at for at, number in enumerate(sorted(set(numbers.values()), reverse=down))}
    others = enumerate(sorted(values - numbers.keys(), reverse=down), start=len(rank))
    return {value: rank[number] for value, number in numbers.items()} | {value: at for at, value in others}


def _is_whole_number(value: str) -> bool:
    digits = value.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER


class NodeLabels:
    """Cached results from the labels of `nodes`; rows and names are those of `capacity`."""

    def __init__(self, capacity: Capacity, nodes: Nodes) -> None:
        self._capacity = capacity
        self._nodes = nodes
        self._rank: IntArray | None = None
        self._preferred: dict[Preference, IntArray] = {}
        self._domains: dict[str, Domains] = {}

    def rank(self) -> IntArray:
        """Each row's rank in the order of node names: the last tie-break of every strategy."""
        if self._rank is None:
            self._rank = np.argsort(np.argsort(np.array(self._capacity.names, dtype=object), kind="stable"))
        return self._rank

    def preference(self, wish: Preference) -> IntArray:
        """Each row's rank by this preference, 0 for the most preferred; see `ranks`."""
        return self._of_labels(self._preferred, wish, ranks)

    def domains(self, key: str) -> Domains:
        """The topology domains of this node label."""
        return self._of_labels(self._domains, key, domains)

    def inside(self, within: Within) -> Mask:
        """The rows that are in all of these domains."""
        inside = np.ones(len(self._capacity.names), dtype=np.bool_)
        for key, value in within:
            inside &= self.domains(key).inside(value)
        return inside

    def _of_labels(
        self, kept: dict[Key, Found], key: Key, find: Callable[[list[Mapping[str, str]], Key], Found]
    ) -> Found:
        known = kept.get(key)
        if known is None:
            rows = range(len(self._capacity.names))
            known = kept[key] = find([self._nodes.labels(row) for row in rows], key)
            drop_oldest(kept, _MOST_KNOWN)
        return known

    def mismatches(self) -> list[str]:
        """One sentence for each difference between the cached results and the nodes' labels."""
        wrong = []
        fresh = NodeLabels(self._capacity, self._nodes)
        if self._rank is not None and not np.array_equal(self._rank, fresh.rank()):
            wrong.append("the order of names is not that of the nodes")
        if any(not np.array_equal(kept, fresh.preference(wish)) for wish, kept in self._preferred.items()):
            wrong.append("a preference is not what the labels say")
        for key, kept in self._domains.items():
            expected = fresh.domains(key)
            if kept.values != expected.values or not np.array_equal(kept.of_row, expected.of_row):
                wrong.append(f"the domains of {key} are not what the labels say")
        return wrong

    def forget(self, changed: Container[str] | None = None) -> bool:
        """Drop the results from labels of these keys; all results with None, after a node was added or removed.

        Returns whether topology domains in use may have changed.
        """
        if changed is None:
            self._rank = None
        for wish in [wish for wish in self._preferred if changed is None or wish.key in changed]:
            del self._preferred[wish]
        outdated = [key for key in self._domains if changed is None or any(name in changed for name in names_of(key))]
        for key in outdated:
            del self._domains[key]
        return bool(outdated)
