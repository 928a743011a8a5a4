"""How far nodes are preferred by their labels (`placement.prefer`): a wish, never a condition.

The most important wish decides; the next one only among nodes that are equal by it. A label's values are ordered
as numbers where they are whole numbers, and these come before all others, which are ordered as text; with Descending
the larger one is preferred, numbers still first. A node without the label, or whose value is not among those named,
comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.declaration import Preference

_LONGEST_NUMBER = 63
"""A label's value has no more characters."""


def ranks(nodes: Sequence[Mapping[str, str]], wish: Preference) -> IntArray:
    """Each node's place by the wish, given its labels: 0 for the most preferred, equal for equally preferred."""
    values = [labels.get(wish.key) for labels in nodes]
    place = _named(wish.values) if wish.values else _ordered({value for value in values if value is not None}, wish)
    last = len(place)
    return np.array([last if value is None else place.get(value, last) for value in values], dtype=np.int64)


def _named(values: Sequence[str]) -> dict[str, int]:
    return {value: number for number, value in reversed(list(enumerate(values)))}


def _ordered(values: set[str], wish: Preference) -> dict[str, int]:
    """The place of each value; numbers that are equal share one, such as 7 and 007."""
    down = wish.order == "Descending"
    numbers = {value: int(value) for value in values if _is_whole_number(value)}
    place = {number: at for at, number in enumerate(sorted(set(numbers.values()), reverse=down))}
    others = enumerate(sorted(values - numbers.keys(), reverse=down), start=len(place))
    return {value: place[number] for value, number in numbers.items()} | {value: at for at, value in others}


def _is_whole_number(value: str) -> bool:
    digits = value.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_NUMBER
