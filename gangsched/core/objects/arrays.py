"""Arrays in which amounts are exact."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
