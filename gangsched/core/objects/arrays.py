"""Array types: exact amounts as 64-bit integers, and masks."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
