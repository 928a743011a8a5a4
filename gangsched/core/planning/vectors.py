"""What a shape requests, in the columns of the capacity matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gangsched.core.cluster.capacity import LIMIT, PODS
from gangsched.core.objects.arrays import IntArray
from gangsched.core.objects.shape import Shape


@dataclass(frozen=True, slots=True)
class Vector:
    """A shape's requests as columns and amounts, the pod count last."""

    columns: npt.NDArray[np.intp]
    amounts: IntArray


class Vectors:
    """The vectors of shapes; `column` gives a resource's column, None where no node has any of it."""

    def __init__(self, column: Callable[[str], int | None]) -> None:
        self._column = column
        self._known: dict[Shape, Vector | None] = {}

    def of(self, shape: Shape) -> Vector | None:
        """The shape's vector; None where no node has ever had one of the resources."""
        if shape in self._known:
            return self._known[shape]
        wanted = [(self._column(resource), min(amount, LIMIT)) for resource, amount in (*shape.requests, (PODS, 1))]
        columns = [column for column, _ in wanted if column is not None]
        vector = None
        if len(columns) == len(wanted):
            amounts = np.array([amount for _, amount in wanted], dtype=np.int64)
            vector = Vector(np.array(columns, dtype=np.intp), amounts)
        self._known[shape] = vector
        return vector
