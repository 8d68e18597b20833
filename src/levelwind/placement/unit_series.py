"""Load series of units, laid out for the compiled loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levelwind.loads.arrays import Floats

# A series that varies by less than this share of the largest load is constant: its correlation is 0.
CONSTANT = 1e-9
# Scores and loads nearer than this are equal. Ties are the rule: operators of a chain rise and fall together.
TIE = 1e-9


class UnitSeries(NamedTuple):
    """What is known of the units (operators, tables, super-operators) that are to be spread over nodes.

    ``centred`` holds each unit's load series less its mean, ``length`` the root of its sum of squares, 0 for
    a series that counts as constant; ``mean`` the mean load. Loads are in CPU seconds per second.
    ``constant`` is the length up to which a sum of series counts as constant.
    """

    centred: Floats
    length: Floats
    mean: Floats
    constant: float


def unit_series(series: Floats) -> UnitSeries:
    """Centre the series (units × samples). O(units × samples)."""
    mean = series.mean(axis=1) if series.shape[1] else np.zeros(len(series))
    centred = np.ascontiguousarray(series - mean[:, None], dtype=np.float64)
    length = np.sqrt(np.einsum("us,us->u", centred, centred))
    constant = CONSTANT * float(np.sqrt(series.shape[1])) * float(np.abs(series).max(initial=0.0))
    return UnitSeries(
        centred=centred,
        length=np.where(length > constant, length, 0.0),
        mean=np.ascontiguousarray(mean, dtype=np.float64),
        constant=constant,
    )
