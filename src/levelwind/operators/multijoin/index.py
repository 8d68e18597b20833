"""Rows sorted by key and by a value: those that agree in the key and lie in an interval are one stretch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from levelwind.operators.timespans import Numbers

Values = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Index:
    """Positions of rows in order of key and value.

    Attributes
    ----------
    rows
        The positions.
    keys
        The keys there are, in order; None if there is none and any two rows agree.
    steps
        The values there are, in order.
    ranked
        For each of the rows in order, one number that holds its key's place and its value's place.
    """

    rows: Numbers
    keys: Numbers | None
    steps: Values
    ranked: Values

    @classmethod
    def of(cls, rows: Numbers, keys: Numbers | None, values: Values) -> Index:
        """An index of rows with the given keys and values, both of the rows at ``rows``. O(n log n)."""
        if keys is None:
            order = np.argsort(values, kind="stable")
            ordered = values[order]
            return cls(rows[order], None, ordered, ordered)
        steps, rank = np.unique(values, return_inverse=True)
        known, place = np.unique(keys, return_inverse=True)
        # Below (n + 1)², so it fits.
        ranked = place * (len(steps) + 1) + rank
        order = np.argsort(ranked, kind="stable")
        return cls(rows[order], known, steps, ranked[order])

    def find(self, keys: Numbers | None, low: Values, high: Values) -> tuple[Numbers, Numbers]:
        """For each probe, where the stretch of its partners begins and ends in ``rows``. O(log n) each.

        A probe's partners have its key and a value from ``low`` to ``high``, both included.
        """
        if self.keys is None or keys is None:
            first = np.searchsorted(self.steps, low, side="left")
            return first, np.maximum(first, np.searchsorted(self.steps, high, side="right"))
        if not len(self.keys):
            nothing = np.zeros(len(keys), dtype=np.int64)
            return nothing, nothing
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        base = place * (len(self.steps) + 1)
        first = np.searchsorted(self.ranked, base + np.searchsorted(self.steps, low, side="left"))
        last = np.searchsorted(self.ranked, base + np.searchsorted(self.steps, high, side="right"))
        return first, np.where(self.keys[place] == keys, np.maximum(first, last), first)
