"""Runs a kernel over the same rows cut into batches in any way."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
from hypothesis import strategies as st

from levelwind.operators.rows import BEGINNING, END, Arrived
from levelwind.operators.state import EMPTY


def batches(frames, cuts):
    """The frames' rows batch by batch; ``cuts`` holds, batch by batch, where each frame is cut."""
    places = [[0] * len(frames), *cuts, [frame.height for frame in frames]]
    for before, after in pairwise(places):
        yield [frame[a:b] for frame, a, b in zip(frames, before, after, strict=True)]


@st.composite
def cut_places(draw, heights):
    """Some ways to cut frames of these heights into batches, empty ones among them."""
    times = draw(st.integers(0, 4))
    each = [sorted(draw(st.integers(0, height)) for _ in range(times)) for height in heights]
    return [list(places) for places in zip(*each, strict=True)]


def run(kernel, frames, cuts=(), state=EMPTY):
    """All that a kernel puts out: rows by route, rejected rows with their reasons, and its last state."""
    outputs, rejected = {}, []
    parts = list(batches(frames, list(cuts)))
    for number, part in enumerate(parts):
        watermark = END if number == len(parts) - 1 else BEGINNING
        stepped = kernel.step(state, [Arrived(rows, watermark) for rows in part])
        state = stepped.state
        for route, rows in stepped.outputs.items():
            outputs.setdefault(route, []).append(rows)
        for bad in stepped.rejected:
            assert bad.rows.height == len(bad.reasons) > 0
            assert bad.reasons.null_count() == 0
            rejected += zip(bad.rows.rows(), bad.reasons.to_list(), strict=True)
    # Strict: a batch without rows must have the columns and types of all others.
    return {route: pl.concat(rows) for route, rows in outputs.items()}, rejected, state
