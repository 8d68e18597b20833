"""Leaving rows out when a batch brings too many: which ones, and how many it were."""

from __future__ import annotations

import numpy as np
import polars as pl

from levelwind.operators.hashing import xxhash64
from levelwind.operators.rows import ORDER


def at_most(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """At most so many of the rows, in their order: those with the smallest hashes of their content.

    What is kept of a batch thus depends on its rows alone, not on where and how often it is processed, and is
    a fair sample of them. Equal rows may stand for each other. O(rows log rows).
    """
    if rows.height <= most:
        return rows
    content = rows.drop(ORDER, strict=False).get_columns()
    hashes = xxhash64(content, [None] * len(content)).to_numpy()
    return rows[np.sort(np.argsort(hashes, kind="stable")[:most])]


def thinned(rows: pl.DataFrame, share: float) -> pl.DataFrame:
    """That share of the rows, at least one if there are any; chosen as `at_most` does."""
    return at_most(rows, max(1, round(share * rows.height)))
