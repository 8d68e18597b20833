"""Windows merged from panes by compiled loops: for everything that is kept as plain numbers.

Entries (one pane of one group each) are numbered by group, laid out group by group in order of panes, and
every window of a group is then a range of them. O(entries + groups + windows put out · entries in them),
where the last term is one addition each; sums of whole numbers do without it, by differences of running
sums. Groups are told apart by hashes that are stored with the entries, so no key is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from levelwind.operators.aggregate.accumulators import PANE
from levelwind.operators.aggregate.windows import Windows
from levelwind.operators.hashing import xxhash64
from levelwind.operators.state import Segment

Array = NDArray[Any]
compiled = njit(cache=True)
WINDOW = "__window"
_SUMS = ("count", "sum", "piece0", "piece1", "piece2", "piece3")
_EXTREMES = {"min": 0, "max": 1, "nan_max": 2}
_SPREAD = ("mean", "squares")
_KINDS = (*_SUMS, *_EXTREMES, *_SPREAD)
_NUMBERS = (pl.Int64, pl.Float64, pl.Int32, pl.Int16, pl.Int8, pl.Float32)
CODE, CHECK, KEYS = "__code", "__check", "__keys"


def coded(entries: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Entries with two hashes of their group: 128 bits that tell groups apart without a look at the keys."""
    if not by:
        return entries
    keys = [entries.get_column(name) for name in by]
    ones = pl.Series(np.ones(entries.height, np.int64))
    codes = [xxhash64(columns, [None] * len(columns)) for columns in (keys, [ones, *keys])]
    if any(key.null_count() for key in keys):
        # To Spark's hash a null is as if it were not there: ("a", null) and (null, "a") would be one. So
        # the hash of a key with nulls is mixed with where they are; that of others must stay as it is.
        where = sum((key.is_null().cast(pl.Int64) * 2**i for i, key in enumerate(keys)), ones * 0)
        codes = [xxhash64([code, where], [None, None]).zip_with(where > 0, code) for code in codes]
    return entries.with_columns(codes[0].alias(CODE), codes[1].alias(CHECK))


def is_plain(segments: Sequence[Segment], kept: Sequence[str]) -> bool:
    """Whether all columns that are kept can be merged here."""
    schema = segments[-1].frame.schema
    return all(
        name.rpartition("|")[2] in (*_SUMS, *_EXTREMES, *_SPREAD) and schema[name] in _NUMBERS
        for name in kept
    )


def merge_windows(
    segments: Sequence[Segment],
    by: Sequence[str],
    kept: Sequence[str],
    windows: Windows,
    first: int,
    last: int,
) -> pl.DataFrame:
    """One row per group and window from ``first`` to ``last``.

    The result has the columns of ``by``, the window's number, and what is kept, merged.
    """
    panes = _joined(segments, PANE)
    if by:
        groups, representatives = _numbered(_joined(segments, CODE), _joined(segments, CHECK))
    else:
        groups, representatives = np.zeros(len(panes), np.int64), np.zeros(1, np.int64)
    order = np.arange(len(panes)) if _is_sorted(panes) else np.argsort(panes, kind="stable")
    place, bounds = _laid_out(groups, order, len(representatives))
    sorted_panes = panes[place]
    span = (windows.size, windows.slide, first, last)
    found = np.empty((4, _ranges(sorted_panes, bounds, *span, np.empty((4, 0), np.int64))), np.int64)
    _ranges(sorted_panes, bounds, *span, found)
    group, window, low, high = found
    merger = _Merger(segments, place, low, high)
    return pl.DataFrame(
        [
            *_keys(segments, by, representatives[group]),
            pl.Series(WINDOW, window),
            *(merger.merged(name) for name in kept),
        ]
    )


def _joined(segments: Sequence[Segment], name: str) -> Array:
    """A column of all segments as one array; nulls, if it has any, are zeros."""
    arrays = []
    for segment in segments:
        found = segment.memo.get(name)
        if found is None:
            column = segment.frame.get_column(name)
            found = (column.fill_null(0) if column.null_count() else column).to_numpy()
            segment.memo[name] = found
        arrays.append(found)
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _keys(segments: Sequence[Segment], by: Sequence[str], rows: Array) -> list[pl.Series]:
    """The groups of some entries."""
    if not by:
        return []
    frames = []
    for segment in segments:
        keys = segment.memo.get(KEYS)
        if keys is None:
            keys = segment.memo[KEYS] = pl.DataFrame([segment.frame.get_column(name) for name in by])
        frames.append(keys)
    whole = frames[0] if len(frames) == 1 else pl.concat(frames, rechunk=False)
    return whole[rows].get_columns()


@compiled
def _is_sorted(values: Array) -> bool:
    sound = True
    for i in range(1, len(values)):
        sound &= values[i - 1] <= values[i]
    return sound


@compiled
def _numbered(codes: Array, checks: Array) -> tuple[Array, Array]:
    """Numbers for equal codes in order of their first appearance, and the first entry of each.

    By a hash table with open addressing. Codes are hashes: their low bits are as good as any.
    """
    size = 16
    while size < 2 * len(codes):
        size *= 2
    mask = size - 1
    slots = np.full(size, -1, np.int64)
    groups = np.empty(len(codes), np.int64)
    representatives = np.empty(len(codes), np.int64)
    count = 0
    for i in range(len(codes)):
        slot = codes[i] & mask
        while slots[slot] >= 0:
            known = representatives[slots[slot]]
            if codes[known] == codes[i] and checks[known] == checks[i]:
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = count
            representatives[count] = i
            count += 1
        groups[i] = slots[slot]
    return groups, representatives[:count]


@compiled
def _laid_out(groups: Array, order: Array, count: int) -> tuple[Array, Array]:
    """Entries group by group, each group's in the given order, and where each group begins and ends."""
    bounds = np.zeros(count + 1, np.int64)
    for group in groups:
        bounds[group + 1] += 1
    for group in range(count):
        bounds[group + 1] += bounds[group]
    free = bounds[:-1].copy()
    place = np.empty(len(groups), np.int64)
    for entry in order:
        group = groups[entry]
        place[free[group]] = entry
        free[group] += 1
    return place, bounds


@compiled
def _ranges(panes: Array, bounds: Array, size: int, slide: int, first: int, last: int, out: Array) -> int:
    """Group, window and range of entries of every window that holds an entry of a group; returns how many.

    Called twice: with no room in ``out`` it only counts.
    """
    room = out.shape[1]
    found = 0
    for group in range(len(bounds) - 1):
        low, end = bounds[group], bounds[group + 1]
        high = low
        window = first
        while window <= last:
            while low < end and panes[low] < window * slide:
                low += 1
            if low == end:
                break
            earliest = (panes[low] - size) // slide + 1
            if earliest > window:
                window = earliest
                continue
            if room:
                high = max(high, low)
                while high < end and panes[high] < window * slide + size:
                    high += 1
                out[0, found], out[1, found], out[2, found], out[3, found] = group, window, low, high
            found += 1
            window += 1
    return found


class _Merger:
    """Merges columns over ranges of entries; what several columns need is worked out once."""

    def __init__(self, segments: Sequence[Segment], place: Array, low: Array, high: Array) -> None:
        self._segments, self._place, self._low, self._high = segments, place, low, high
        self._spreads: dict[str, tuple[Array, Array]] = {}

    def merged(self, name: str) -> pl.Series:
        """One column."""
        call, _, kind = name.rpartition("|")
        low, high = self._low, self._high
        if kind in _SPREAD:
            if call not in self._spreads:
                parts = [self._values(f"{call}|{part}") for part in ("count", *_SPREAD)]
                self._spreads[call] = _spread(*parts, low, high)
            return pl.Series(name, self._spreads[call][_SPREAD.index(kind)])
        values = self._values(name)
        if kind in _SUMS:
            if values.dtype == np.int64:
                return pl.Series(name, _sum_whole(values, low, high))
            return pl.Series(name, _sum(values, low, high))
        dtype = self._segments[-1].frame.schema[name]
        result, found = _extreme(values, self._valid(name), low, high, _EXTREMES[kind])
        merged = pl.Series(name, result, dtype=dtype)
        return merged if found.all() else merged.zip_with(pl.Series(found), pl.Series([None], dtype=dtype))

    def _values(self, name: str) -> Array:
        return _joined(self._segments, name)[self._place]

    def _valid(self, name: str) -> Array:
        columns = [segment.frame.get_column(name) for segment in self._segments]
        if not any(column.null_count() for column in columns):
            return np.ones(len(self._place), np.bool_)
        return np.concatenate([column.is_not_null().to_numpy() for column in columns])[self._place]


@compiled
def _sum_whole(values: Array, low: Array, high: Array) -> Array:
    """Sums of ranges by differences of running sums: exact, since whole numbers are."""
    running = np.empty(len(values) + 1, np.int64)
    running[0] = 0
    for i in range(len(values)):
        running[i + 1] = running[i] + values[i]
    out = np.empty(len(low), np.int64)
    for i in range(len(low)):
        out[i] = running[high[i]] - running[low[i]]
    return out


@compiled
def _sum(values: Array, low: Array, high: Array) -> Array:
    out = np.empty(len(low), values.dtype)
    for i in range(len(low)):
        total = values[low[i]]
        for j in range(low[i] + 1, high[i]):
            total += values[j]
        out[i] = total
    return out


@compiled
def _extreme(values: Array, valid: Array, low: Array, high: Array, kind: int) -> tuple[Array, Array]:
    """Smallest (0), largest (1), or largest with NaN above all numbers (2)."""
    out = np.zeros(len(low), values.dtype)
    found = np.zeros(len(low), np.bool_)
    for i in range(len(low)):
        for j in range(low[i], high[i]):
            if not valid[j]:
                continue
            value = values[j]
            if not found[i]:
                out[i], found[i] = value, True
            elif kind == 0:
                if value < out[i] or out[i] != out[i]:
                    out[i] = value
            elif kind == 1:
                if value > out[i]:
                    out[i] = value
            elif value > out[i] or value != value:
                out[i] = value
    return out, found


@compiled
def _spread(count: Array, mean: Array, squares: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Means and sums of squared differences of ranges, merged pair by pair."""
    means = np.zeros(len(low))
    sums = np.zeros(len(low))
    for i in range(len(low)):
        rows = 0
        for j in range(low[i], high[i]):
            if count[j] == 0:
                continue
            both = rows + count[j]
            apart = mean[j] - means[i]
            sums[i] += squares[j] + apart * apart * rows * count[j] / both
            means[i] += apart * count[j] / both
            rows = both
    return means, sums
