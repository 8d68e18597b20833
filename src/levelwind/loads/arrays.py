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


def standardised(series: Floats) -> Floats:
    """Rows with mean 0 and length 1, so that a product of two is their correlation; constant rows are 0."""
    centred = series - series.mean(axis=1, keepdims=True)
    length = np.sqrt((centred * centred).sum(axis=1, keepdims=True))
    scale = np.abs(series).max(axis=1, keepdims=True, initial=0.0) * np.sqrt(series.shape[1])
    return np.where(length > 1e-9 * scale, centred / np.maximum(length, 1e-300), 0.0)


def shared(array: NDArray[Any]) -> NDArray[Any]:
    """The array, marked as not to be written to, since many will read it."""
    array.setflags(write=False)
    return array
