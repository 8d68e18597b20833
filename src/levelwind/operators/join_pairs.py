"""Pairs of rows by key and time: exactly those that agree, a bounded number at a time, no loop over rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from levelwind.operators.rows import BEGINNING, END
from levelwind.operators.timespans import Numbers, minus, plus

# Pairs looked at together: enough to make a vectorised step pay, few enough to stay in the cache.
CHUNK = 1 << 18
_CODE = "__code"
_POSITION = "__position"


@dataclass(frozen=True, slots=True)
class Side:
    """Rows of one input, as far as pairing is concerned: event times, and a frame of key columns.

    The key columns of both sides have the same names and types, as keys of a join (see `as_key`);
    None if any two rows may be a pair.
    """

    times: Numbers
    keys: pl.DataFrame | None = None


def times_of(rows: pl.DataFrame, clock: str) -> Numbers:
    """The event times of some rows, in microseconds."""
    return rows.get_column(clock).to_physical().to_numpy()


def pairs(
    probe: Side, other: Side, within_us: int, *, chunk: int = CHUNK
) -> Iterator[tuple[Numbers, Numbers]]:
    """The pairs with equal keys whose times are at most ``within_us`` apart, as positions in both sides.

    The other side is sorted by key and time; the partners of a row are then one stretch of it, found
    by two searches. Only pairs that agree in both are ever made, however common a key or dense the time.
    A null key has no partner.

    Costs O((n + m) log m) for n rows that meet m, and O(chunk) memory besides the pairs of one chunk.
    """
    if not len(probe.times) or not len(other.times):
        return
    low, high = int(probe.times.min()), int(probe.times.max())
    near = np.flatnonzero(
        (other.times >= max(low - within_us, BEGINNING)) & (other.times <= min(high + within_us, END))
    )
    here, mine, there, theirs = _codes(probe, other, near)
    if not len(here) or not len(there):
        return

    near = near[there]
    times = other.times[near]
    steps = np.unique(times)
    # Key and rank of the time in one number: below (n + m)², so it fits.
    ranked = theirs * (len(steps) + 1) + np.searchsorted(steps, times)
    order = np.argsort(ranked, kind="stable")
    ranked, near = ranked[order], near[order]
    probed = probe.times[here]
    base = mine * (len(steps) + 1)
    first = np.searchsorted(ranked, base + np.searchsorted(steps, minus(probed, within_us), side="left"))
    last = np.searchsorted(ranked, base + np.searchsorted(steps, plus(probed, within_us), side="right"))
    for row, partner in stretches(first, last, chunk):
        yield here[row], near[partner]


def _codes(probe: Side, other: Side, near: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Rows whose key both sides may have, and a number for each key.

    Positions and numbers of the probing rows, then of the other rows that are ``near``.
    """
    if probe.keys is None or other.keys is None:
        here, there = np.arange(len(probe.times)), np.arange(len(near))
        return here, np.zeros_like(here), there, np.zeros_like(there)
    numbered = probe.keys.unique(maintain_order=True)
    numbered = numbered.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(_CODE))
    return (*_coded(probe.keys, numbered), *_coded(other.keys[near], numbered))


def _coded(keys: pl.DataFrame, numbered: pl.DataFrame) -> tuple[Numbers, Numbers]:
    """The positions of the rows whose key has a number, and the numbers."""
    placed = keys.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(_POSITION))
    found = placed.join(numbered, on=keys.columns, how="inner", maintain_order="left")
    return found.get_column(_POSITION).to_numpy(), found.get_column(_CODE).to_numpy()


def stretches(first: Numbers, last: Numbers, chunk: int) -> Iterator[tuple[Numbers, Numbers]]:
    """The pairs (i, j) with first[i] ≤ j < last[i], at most ``chunk`` at a time."""
    ends = np.cumsum(last - first)
    begins = ends - (last - first)
    total = int(ends[-1])
    for low in range(0, total, chunk):
        high = min(low + chunk, total)
        rows = np.arange(
            np.searchsorted(ends, low, side="right"), np.searchsorted(ends, high - 1, side="right") + 1
        )
        lengths = np.minimum(ends[rows], high) - np.maximum(begins[rows], low)
        row = np.repeat(rows, lengths)
        yield row, first[row] + np.arange(low, high) - begins[row]
