"""How far nodes are preferred by their labels (`placement.prefer`): a wish, never a condition.

The most important preference decides; the next one only among nodes that are equal by it. A label's values are ordered
as numbers where they are whole numbers, and these come before all others, which are ordered as text; with Descending
the larger one is preferred, numbers still first. A node without the label, or whose value is not among those named,
comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gangsched.core.capacity import IntArray
from gangsched.core.model import Preference

_LONGEST_NUMBER = 63
"""A label's value has no more characters."""


def ranks(nodes: Sequence[Mapping[str, str]], preferences: Sequence[Preference]) -> IntArray:
    """Each node's place by all preferences, given its labels: 0 for the most preferred, equal for equally preferred."""
    by_each = [_ranks(nodes, preference) for preference in preferences]
    if not nodes or not by_each:
        return np.zeros(len(nodes), dtype=np.int64)
    inverse: IntArray = np.unique(np.array(by_each, dtype=np.int64).T, axis=0, return_inverse=True)[1]
    return inverse.reshape(-1)


def _ranks(nodes: Sequence[Mapping[str, str]], preference: Preference) -> list[int]:
    values = [labels.get(preference.key) for labels in nodes]
    wanted: Sequence[str] = preference.values or _ordered({value for value in values if value is not None}, preference)
    place = {value: number for number, value in reversed(list(enumerate(wanted)))}
    return [len(wanted) if value is None else place.get(value, len(wanted)) for value in values]


def _ordered(values: set[str], preference: Preference) -> list[str]:
    numbers = {value: int(value) for value in values if _is_whole_number(value)}
    down = preference.order == "Descending"
    first = sorted(numbers, key=lambda value: (-numbers[value] if down else numbers[value], value))
    return [*first, *sorted(values - numbers.keys(), reverse=down)]


def _is_whole_number(value: str) -> bool:
    digits = value.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER
