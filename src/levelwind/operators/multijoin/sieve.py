"""Candidates thinned out by a compiled loop before anything is made of them.

One index goes by one value, and leaves many rows where time and several bands say more together. Here every
pair of a group and a candidate is held against all of them at once, with nothing written down of those that
fall through. Conditions are still asked of what is left: bands may be a little too wide.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from levelwind.operators.timespans import Numbers

Array = NDArray[Any]
compiled = njit(cache=True)


def sieved(
    first: Numbers, last: Numbers, values: Array, low: Array, high: Array, chunk: int
) -> Iterator[tuple[Numbers, Numbers]]:
    """Groups, and places in their stretches whose values are all between their group's bounds.

    In the order of groups and places, at most ``chunk`` pairs at a time. O(candidates), a few nanoseconds
    each: most fail by their first or second value.

    Parameters
    ----------
    first, last
        For each group, where its stretch of places begins and ends.
    values
        A row for each place, a column for each thing compared. NaN is between no bounds.
    low, high
        A row for each group, with the same columns.

    Examples
    --------
    >>> values = np.array([[1.0, 5.0], [2.0, 9.0], [3.0, 5.0]])
    >>> low, high = np.array([[0.0, 4.0], [2.0, 0.0]]), np.array([[9.0, 6.0], [3.0, 9.0]])
    >>> [(groups, places)] = sieved(np.array([0, 0]), np.array([3, 3]), values, low, high, 8)
    >>> groups.tolist(), places.tolist()
    ([0, 0, 1, 1], [0, 2, 1, 2])
    """
    group, place = 0, 0
    while group < len(first):
        groups, places = np.empty(chunk, dtype=np.int64), np.empty(chunk, dtype=np.int64)
        count, group, place = _sift(first, last, values, low, high, group, place, groups, places)
        if count:
            yield groups[:count], places[:count]


@compiled
def _sift(
    first: Array,
    last: Array,
    values: Array,
    low: Array,
    high: Array,
    group: int,
    place: int,
    groups: Array,
    places: Array,
) -> tuple[int, int, int]:
    """Fill ``groups`` and ``places`` from a place on; how many there are, and where to go on."""
    count, room, things = 0, len(places), values.shape[1]
    while group < len(first):
        place = max(place, first[group])
        while place < last[group]:
            if count == room:
                return count, group, place
            between = True
            for k in range(things):
                value = values[place, k]
                # Asked so that NaN is outside.
                if not (low[group, k] <= value <= high[group, k]):
                    between = False
                    break
            if between:
                groups[count], places[count] = group, place
                count += 1
            place += 1
        group += 1
        place = 0
    return count, group, place
