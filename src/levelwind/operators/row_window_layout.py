"""Where windows of rows begin and end among rows that lie group after group, each in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from levelwind.operators.rows import END
from levelwind.operators.timespans import Numbers, plus


@dataclass(frozen=True, slots=True)
class Layout:
    """Windows that are to be put out, and where in each group the first window begins that stays open.

    ``starts`` and ``sizes`` are positions and numbers of rows; ``ends`` are the windows' ends in time where
    it is a timeout that ended them, else the largest number. ``left`` counts rows from the group's first.
    """

    starts: Numbers
    sizes: Numbers
    ends: Numbers
    left: Numbers

    def chunks(self, rows: int) -> Iterator[slice]:
        """The windows in stretches of at most so many rows; a larger window is a stretch of its own."""
        if not len(self.sizes):
            return
        reached = np.cumsum(self.sizes)
        low = 0
        while low < len(reached):
            done = reached[low - 1] if low else 0
            high = max(int(np.searchsorted(reached, done + rows, side="right")), low + 1)
            yield slice(low, high)
            low = high

    def members(self, part: slice) -> tuple[Numbers, Numbers]:
        """For each row of each of some windows: which of them it is in, and its position."""
        sizes = self.sizes[part]
        window = np.repeat(np.arange(len(sizes)), sizes)
        within = np.arange(len(window)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return window, self.starts[part][window] + within


def sliding(counts: Numbers, rows: int, slide: int, *, to_end: bool) -> Layout:
    """Windows of so many rows, one every ``slide`` rows, in groups of the given numbers of rows.

    Parameters
    ----------
    to_end
        Whether windows that are not full are put out as well.
    """
    full = np.maximum((counts - rows) // slide + 1, 0)
    windows = -(-counts // slide) if to_end else full
    group = np.repeat(np.arange(len(counts)), windows)
    first = (np.arange(len(group)) - np.repeat(np.cumsum(windows) - windows, windows)) * slide
    starts = (np.cumsum(counts) - counts)[group] + first
    sizes = np.minimum(counts[group] - first, rows)
    return Layout(starts, sizes, np.full(len(starts), END), windows * slide)


def timed(counts: Numbers, times: Numbers, rows: int, timeout_us: int, watermark: int) -> Layout:
    """Windows of so many rows that follow one another, ended by a timeout after their first row as well.

    A window is put out if it is full or if the watermark has reached its timeout. Where the next window
    begins follows from where this one ends, so that windows are walked through one by one; rows are not.
    """
    ends = np.cumsum(counts)
    group = np.repeat(np.arange(len(counts)), counts)
    due = plus(times, timeout_us)
    expired = _first_at_or_after(group, times, due)
    position = np.arange(len(times))
    after = np.minimum(np.minimum(expired, position + rows), ends[group])
    closed = (after - position == rows) | (due <= watermark)

    hops, is_closed = after.tolist(), closed.tolist()
    starts, left = [], np.empty_like(counts)
    for index, (at, end) in enumerate(zip((ends - counts).tolist(), ends.tolist(), strict=True)):
        begin = at
        while at < end and is_closed[at]:
            starts.append(at)
            at = hops[at]
        left[index] = at - begin
    chosen = np.array(starts, dtype=np.int64)
    sizes = after[chosen] - chosen
    return Layout(chosen, sizes, np.where(sizes == rows, END, due[chosen]), left)


def _first_at_or_after(group: Numbers, times: Numbers, wanted: Numbers) -> Numbers:
    """For each row the first position in its group, or the end of it, with at least the wanted time."""
    steps = np.unique(times)
    span = len(steps) + 1
    keys = group * span + np.searchsorted(steps, times)
    return np.searchsorted(keys, group * span + np.searchsorted(steps, wanted))
