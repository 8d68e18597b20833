"""The two array types of the numeric code, and the small operations they share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def sum_by(group: Ints, values: Floats, count: int) -> Floats:
    """Sum of the values (numbers or rows) of each group. O(values)."""
    total = np.zeros((count, *values.shape[1:]))
    np.add.at(total, group, values)
    return total


def shared(array: NDArray[Any]) -> NDArray[Any]:
    """The array, marked as not to be written to, since many will read it."""
    array.setflags(write=False)
    return array
