"""From rows on a port to the boxes that read them: parted for split operators, one copy per node."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import polars as pl

from levelwind.model import Port
from levelwind.operators.hashing import instance_of
from levelwind.operators.rows import ORDER
from levelwind.runtime.cuts import Cut
from levelwind.runtime.program import Layout, Part


def parted(layout: Layout, port: Port, rows: pl.DataFrame) -> Iterator[tuple[Part, pl.DataFrame]]:
    """The parts in which a port is read, each with its rows; parts without rows are left out.

    Rows are hashed and sorted once for all operators that are split alike. O(rows) per way of splitting.
    """
    cuts: dict[Cut, list[pl.DataFrame]] = {}
    for part in layout.parts.get(port, ()):
        if part.cut is None:
            yield part, rows
            continue
        if part.cut not in cuts:
            cuts[part.cut] = cut_rows(rows, part.cut)
        share = cuts[part.cut][part.instance]
        if share.height:
            yield part, share


def cut_rows(rows: pl.DataFrame, cut: Cut) -> list[pl.DataFrame]:
    """The rows of each instance, in their order."""
    names = cut.columns or tuple(name for name in rows.columns if name != ORDER)
    instances = instance_of([rows.get_column(name) for name in names], cut.into, cut.types or None)
    order = np.argsort(instances, kind="stable")
    bounds = np.searchsorted(instances[order], np.arange(cut.into + 1))
    sorted_rows = rows[order]
    return [sorted_rows.slice(int(low), int(high - low)) for low, high in pairwise(bounds)]
