"""Topology domains: the nodes that share the value of a label, such as a zone, a rack or a block.

A node without the label is in no domain. Of zone and region the label that Kubernetes had before it is accepted where
a node has only the other one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gangsched.core.objects.arrays import IntArray

_FORMER = {
    "topology.kubernetes.io/zone": "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region": "failure-domain.beta.kubernetes.io/region",
}
_ALIASES = _FORMER | {former: present for present, former in _FORMER.items()}

Domain = tuple[str, str | None]
"""A label's key and one of its values; None is the domain that no node is in."""


class Domains(NamedTuple):
    """The values that a label has, in order, with their positions, and for each row that of its value, -1 for none."""

    values: tuple[str, ...]
    positions: Mapping[str, int]
    of_row: IntArray

    def inside(self, value: str | None) -> npt.NDArray[np.bool_]:
        """The rows of the domain of this value; none of them for a value that no node has, and for None."""
        position = self.positions.get(value, len(self.values)) if value is not None else len(self.values)
        inside: npt.NDArray[np.bool_] = self.of_row == position
        return inside


def names_of(key: str) -> tuple[str, ...]:
    """The labels that make up the domains of this key."""
    return (key, _ALIASES[key]) if key in _ALIASES else (key,)


def domains(nodes: Sequence[Mapping[str, str]], key: str) -> Domains:
    """The domains of the label among nodes with these labels."""
    names = names_of(key)
    found = [next((labels[name] for name in names if name in labels), None) for labels in nodes]
    values = tuple(sorted({value for value in found if value is not None}))
    positions = {value: number for number, value in enumerate(values)}
    of_row = np.array([-1 if value is None else positions[value] for value in found], dtype=np.int64)
    return Domains(values, positions, of_row)
